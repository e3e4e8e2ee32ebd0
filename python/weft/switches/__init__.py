"""What switches are told, so that source ports choose uplinks; a template a platform."""
