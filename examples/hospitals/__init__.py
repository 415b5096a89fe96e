"""Three hospitals that show nobody a patient, and a coordinator that counts over all of them."""
