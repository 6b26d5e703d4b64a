"""The runners of a job: each runner's option presets and preflight checks, and servers to run jobs on."""
