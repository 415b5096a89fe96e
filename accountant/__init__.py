"""accountant"""
