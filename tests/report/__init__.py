"""Tests of the page and its pictures: the story, the layout, what hostile evidence does, and a real browser."""
