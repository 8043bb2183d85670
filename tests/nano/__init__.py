"""Tests of the nano model's making: scenes, language, judge, tokens, training stages and the shipped folder."""
