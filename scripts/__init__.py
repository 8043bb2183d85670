"""Programs that people and CI run; nothing here is part of the installed packages."""
