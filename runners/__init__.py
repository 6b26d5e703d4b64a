"""Where a job runs: option presets and preflight checks per runner."""
