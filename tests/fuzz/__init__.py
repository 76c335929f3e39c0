"""Structure-aware fuzzing of live servers: frames of all codes, right, odd and damaged, beside an honest client."""
