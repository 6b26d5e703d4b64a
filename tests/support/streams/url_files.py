"""Files of this machine behind a URL, local-url:///path: a real Beam filesystem with a scheme.

Beam finds a filesystem by looking through all subclasses, so importing this module registers it.
"""

from __future__ import annotations

from apache_beam.io.filesystem import FileMetadata
from apache_beam.io.localfilesystem import LocalFileSystem

SCHEME = "local-url"


def url(path):
    return f"{SCHEME}://{path}"


def _path(text):
    return text.removeprefix(f"{SCHEME}://")


class UrlFileSystem(LocalFileSystem):
    @classmethod
    def scheme(cls):
        return SCHEME

    def _list(self, dir_or_prefix):
        for found in super()._list(_path(dir_or_prefix)):
            yield FileMetadata(url(found.path), found.size_in_bytes, found.last_updated_in_seconds)

    def create(self, path, *args, **kwargs):
        return super().create(_path(path), *args, **kwargs)

    def _path_open(self, path, *args, **kwargs):
        return super()._path_open(_path(path), *args, **kwargs)

    def exists(self, path):
        return super().exists(_path(path))

    def size(self, path):
        return super().size(_path(path))

    def last_updated(self, path):
        return super().last_updated(_path(path))

    def metadata(self, path):
        return FileMetadata(path, self.size(path), self.last_updated(path))

    def rename(self, source_file_names, destination_file_names):
        super().rename(list(map(_path, source_file_names)), list(map(_path, destination_file_names)))

    def delete(self, paths):
        super().delete(list(map(_path, paths)))
