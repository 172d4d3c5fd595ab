"""What people and programs see: frozen rows first, then tables, JSON and CSV made of them."""
