"""What every room leans on: checks, files, data frames, notebooks."""
