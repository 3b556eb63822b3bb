//! Answers in the shapes that four servers really give them.

/// OpenAI: a role first, ids once, arguments in shreds, a usage report after the end.
pub(crate) const OPENAI: &str = r#"data: {"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1764500000,"model":"gpt-4o-mini-2024-07-18","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1764500000,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"delta":{"content":"Für Zoë "},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1764500000,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"delta":{"content":"😀 明日"},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1764500000,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_Zb1","type":"function","function":{"name":"book_meeting","arguments":""}}]},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1764500000,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"name\":\"Zo"}}]},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1764500000,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"ë\"}"}}]},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1764500000,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_Zb2","type":"function","function":{"name":"cancel_meeting","arguments":""}}]},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1764500000,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"id\":7}"}}]},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1764500000,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}],"usage":null}

data: {"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1764500000,"model":"gpt-4o-mini-2024-07-18","choices":[],"usage":{"prompt_tokens":90,"completion_tokens":30,"total_tokens":120}}

data: [DONE]

"#;

/// Ollama: whole calls, each with index 0, and a last chunk with an empty text.
pub(crate) const OLLAMA: &str = r#"data: {"id":"chatcmpl-512","object":"chat.completion.chunk","created":1764500000,"model":"qwen2.5:7b","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"Für Zoë 😀 明日"},"finish_reason":null}]}

data: {"id":"chatcmpl-512","object":"chat.completion.chunk","created":1764500000,"model":"qwen2.5:7b","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_Zb1","index":0,"type":"function","function":{"name":"book_meeting","arguments":"{\"name\":\"Zoë\"}"}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-512","object":"chat.completion.chunk","created":1764500000,"model":"qwen2.5:7b","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_Zb2","index":0,"type":"function","function":{"name":"cancel_meeting","arguments":"{\"id\":7}"}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-512","object":"chat.completion.chunk","created":1764500000,"model":"qwen2.5:7b","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"tool_calls"}]}

data: [DONE]

"#;

/// llama.cpp: a null text first, `finish_reason` before `delta`, keep-alive comments, timings at the end.
pub(crate) const LLAMA_CPP: &str = r#"data: {"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"created":1764500000,"id":"chatcmpl-x9","model":"qwen2.5.gguf","system_fingerprint":"b6000-1","object":"chat.completion.chunk"}

:

data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"Für Zoë 😀"}}],"created":1764500000,"id":"chatcmpl-x9","model":"qwen2.5.gguf","object":"chat.completion.chunk"}

data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":" 明日"}}],"created":1764500000,"id":"chatcmpl-x9","model":"qwen2.5.gguf","object":"chat.completion.chunk"}

data: {"choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_Zb1","type":"function","function":{"name":"book_meeting","arguments":"{"}}]}}],"created":1764500000,"id":"chatcmpl-x9","model":"qwen2.5.gguf","object":"chat.completion.chunk"}

data: {"choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"name\":\"Zoë\"}"}}]}}],"created":1764500000,"id":"chatcmpl-x9","model":"qwen2.5.gguf","object":"chat.completion.chunk"}

data: {"choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_Zb2","type":"function","function":{"name":"cancel_meeting","arguments":"{\"id\":7}"}}]}}],"created":1764500000,"id":"chatcmpl-x9","model":"qwen2.5.gguf","object":"chat.completion.chunk"}

data: {"choices":[{"finish_reason":"tool_calls","index":0,"delta":{}}],"created":1764500000,"id":"chatcmpl-x9","model":"qwen2.5.gguf","object":"chat.completion.chunk","timings":{"prompt_n":50,"predicted_n":20}}

data: [DONE]

"#;

/// vLLM: thoughts in a field of their own, fields of its own in every choice, carriage returns from a proxy.
pub(crate) const VLLM: &str = concat!(
    r#"data: {"id":"chatcmpl-f0","object":"chat.completion.chunk","created":1764500000,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}"#,
    "\r\n\r\n",
    r#"data: {"id":"chatcmpl-f0","object":"chat.completion.chunk","created":1764500000,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"reasoning_content":"They want two things."},"logprobs":null,"finish_reason":null}]}"#,
    "\r\n\r\n",
    r#"data: {"id":"chatcmpl-f0","object":"chat.completion.chunk","created":1764500000,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"content":"Für Zoë 😀 明日"},"logprobs":null,"finish_reason":null,"token_ids":null}]}"#,
    "\r\n\r\n",
    r#"data: {"id":"chatcmpl-f0","object":"chat.completion.chunk","created":1764500000,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"tool_calls":[{"id":"call_Zb1","type":"function","index":0,"function":{"name":"book_meeting"}}]},"logprobs":null,"finish_reason":null}]}"#,
    "\r\n\r\n",
    r#"data: {"id":"chatcmpl-f0","object":"chat.completion.chunk","created":1764500000,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"name\":\"Zoë\"}"}}]},"logprobs":null,"finish_reason":null}]}"#,
    "\r\n\r\n",
    r#"data: {"id":"chatcmpl-f0","object":"chat.completion.chunk","created":1764500000,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"tool_calls":[{"id":"call_Zb2","type":"function","index":1,"function":{"name":"cancel_meeting","arguments":"{\"id\":"}}]},"logprobs":null,"finish_reason":null}]}"#,
    "\r\n\r\n",
    r#"data: {"id":"chatcmpl-f0","object":"chat.completion.chunk","created":1764500000,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"7}"}}]},"logprobs":null,"finish_reason":"tool_calls","stop_reason":null}]}"#,
    "\r\n\r\ndata: [DONE]\r\n\r\n",
);

/// One event with a piece of text.
pub(crate) fn text(piece: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{piece}\"}},\"finish_reason\":null}}]}}\n\n"
    )
}

/// The last event.
pub(crate) fn end(reason: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\n")
}
