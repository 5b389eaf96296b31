"""Turn rows into verified files: encode, verify, describe and publish them once."""
