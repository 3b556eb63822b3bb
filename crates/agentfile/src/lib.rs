//! The agent file: TOML to an agent.
