"""What people look at: tables (and later diagrams and pages) made from results."""
