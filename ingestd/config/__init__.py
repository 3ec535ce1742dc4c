"""The configuration: a YAML file and the environment, validated into frozen values."""
