"""Result records as matplotlib figures: each a function of records, without pyplot's state."""
