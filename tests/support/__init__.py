"""What tests share: starting ranks, and cases that run on all of them."""
