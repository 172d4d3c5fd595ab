"""The migrations, one module for each schema revision."""
