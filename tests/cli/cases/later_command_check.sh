# A framework config cannot be read yet; estimate is nearest.
ndplan check accelerate.yaml
