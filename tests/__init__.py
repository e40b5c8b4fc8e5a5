"""The tests, a package tree beside the packages that they test."""
