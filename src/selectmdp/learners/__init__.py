"""The loops that learn: the paper's DQN with replay."""
