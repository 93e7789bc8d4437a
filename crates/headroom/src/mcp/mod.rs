//! The command `mcp`: the Model Context Protocol over standard input and output, so that agents ask instead of guessing.

mod tools;

use std::io::{BufRead, Read, Write};

use serde_json::{Value, json};

use super::answer::{Answer, Refusal};
use super::args::Args;
use super::terminal::inert;

/// Versions of the protocol whose messages are the same for what is served here, the newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The longest message that is read, in bytes.
const LONGEST: u64 = 4 << 20;

/// Serves until the client closes its end.
pub(super) fn mcp(_: &Args) -> Result<Answer, Refusal> {
    let served = serve(std::io::stdin().lock(), std::io::stdout());
    served.map_err(|error| Refusal(vec![format!("the client cannot be reached: {error}")]))?;
    Ok(Answer::with_json(String::new(), String::new()))
}

/// Answers requests, one JSON document a line.
fn serve(mut from: impl BufRead, mut to: impl Write) -> std::io::Result<()> {
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut from).take(LONGEST);
        if limited.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let answer = if line.ends_with(b"\n") || limited.limit() > 0 {
            answer(&line)
        } else {
            // What is left of it would be read as messages.
            from.skip_until(b'\n')?;
            let longest = format!("expected a message of less than {LONGEST} bytes");
            Some(error(&Value::Null, -32600, &longest))
        };
        if let Some(answer) = answer {
            writeln!(to, "{answer}")?;
            to.flush()?;
        }
    }
}

/// The answer to a message; notifications get none.
fn answer(line: &[u8]) -> Option<Value> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let message: Value = match serde_json::from_slice(line) {
        Ok(message) => message,
        Err(problem) => {
            let said = format!("not a JSON document: {problem}");
            return Some(error(&Value::Null, -32700, &said));
        }
    };
    let id = message.get("id")?;
    let Some(method) = message.get("method").and_then(Value::as_str) else {
        // A response: nothing was asked of the client.
        return None;
    };
    let params = message.get("params").unwrap_or(&Value::Null);
    let result = match method {
        "initialize" => initialized(params),
        "ping" => json!({}),
        "tools/list" => json!({ "tools": tools::list() }),
        "tools/call" => match tools::call(params) {
            Some(called) => called,
            None => return Some(error(id, -32602, &tools::unknown(params))),
        },
        other => {
            let said = format!(
                "method is `{}`; expected one of tools/list, tools/call",
                inert(other)
            );
            return Some(error(id, -32601, &said));
        }
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

fn initialized(params: &Value) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let version = asked.filter(|version| VERSIONS.contains(version));
    json!({
        "protocolVersion": version.unwrap_or(VERSIONS[0]),
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "headroom", "title": "Headroom", "version": env!("CARGO_PKG_VERSION") },
        "instructions": "Predicts the GPU memory of PyTorch training exactly, offline. Start with `read` for files, commands and \
                         sentences, or `estimate` for a model; state to the user what an answer assumed.",
    })
}

fn error(id: &Value, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, serve};
    use serde_json::{Value, json};

    fn answers(text: &str) -> Vec<Value> {
        let mut written = Vec::new();
        serve(text.as_bytes(), &mut written).unwrap();
        let lines = String::from_utf8(written).unwrap();
        lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[track_caller]
    fn check(message: &str, pointer: &str, expected: &Value) {
        let all = answers(message);
        assert_eq!(
            all[0].pointer(pointer),
            Some(expected),
            "{message}: {all:?}"
        );
    }

    fn call(name: &str, arguments: &Value) -> Value {
        let params = json!({ "name": name, "arguments": arguments });
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        answers(&message.to_string()).remove(0)
    }

    #[test]
    fn a_session_begins_with_a_version_that_both_know() {
        for (asked, given) in [("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")] {
            let message = json!({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {"protocolVersion": asked}});
            check(
                &message.to_string(),
                "/result/protocolVersion",
                &json!(given),
            );
            check(&message.to_string(), "/id", &json!("a"));
        }
        assert!(
            answers("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n\n")
                .is_empty()
        );
    }

    #[test]
    fn what_is_no_request_is_an_error() {
        check("{", "/error/code", &json!(-32700));
        check("{\"id\":1,\"method\":\"x\"}", "/error/code", &json!(-32601));
        let unknown = "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"fly\"}}";
        check(unknown, "/error/code", &json!(-32602));
        let long = format!(
            "{}\n{{\"id\":2,\"method\":\"ping\"}}\n",
            " ".repeat(LONGEST as usize + 9)
        );
        let all = answers(&long);
        assert_eq!(
            (&all[0]["error"]["code"], &all[1]["id"]),
            (&json!(-32600), &json!(2))
        );
    }

    #[test]
    fn every_tool_describes_its_arguments() {
        let all = answers("{\"id\":1,\"method\":\"tools/list\"}");
        let tools = all[0]["result"]["tools"].as_array().unwrap();
        let names: Vec<&str> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert!(names.starts_with(&["read", "estimate", "fit"]), "{names:?}");
        for tool in tools {
            assert_eq!(tool["inputSchema"]["type"], "object");
            for required in tool["inputSchema"]["required"].as_array().unwrap() {
                let property = &tool["inputSchema"]["properties"][required.as_str().unwrap()];
                assert!(property["description"].is_string(), "{tool}");
            }
        }
        let settings = &tools[1]["inputSchema"]["properties"]["settings"]["properties"];
        assert_eq!(settings["batch"]["type"], "integer");
        assert!(
            settings["precision"]["enum"]
                .as_array()
                .unwrap()
                .contains(&json!("bf16"))
        );
    }

    #[test]
    fn tools_answer_as_commands_do() {
        let estimate = call(
            "estimate",
            &json!({"what": "gpt2", "settings": {"batch": 2, "gpu": "rtx-4090", "lora": false}}),
        );
        let result = &estimate["result"];
        assert_eq!(result["isError"], false);
        assert_eq!(result["structuredContent"]["fits"], true);
        assert!(result["structuredContent"]["assumptions"].is_array());
        assert!(
            result["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("\"fits\"")
        );
        let wrong = call(
            "estimate",
            &json!({"what": "gpt2", "settings": {"batch": 0}}),
        );
        assert_eq!(wrong["result"]["isError"], true);
        assert!(
            wrong["result"]["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("data.micro_batch is `0`")
        );
        let read = call(
            "read",
            &json!({"what": "RTX 4090, LoRA on Llama-3.1-8B at 4k"}),
        );
        assert_eq!(read["result"]["isError"], false);
        let exported = call("export", &json!({"what": "gpt2", "target": "hf"}));
        assert!(exported["result"]["structuredContent"]["files"].is_object());
        let doctor = call(
            "doctor",
            &json!({"log": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."}),
        );
        assert!(
            doctor["result"]["structuredContent"]["cause"].is_string(),
            "{doctor}"
        );
        let gpus = call("catalogue", &json!({"kind": "gpus", "containing": "h100"}));
        let listed = gpus["result"]["structuredContent"]["gpus"]
            .as_array()
            .unwrap();
        assert!(!listed.is_empty() && listed.len() < 10, "{listed:?}");
    }

    #[test]
    fn a_tool_reads_no_standard_input_and_no_option_from_its_words() {
        for what in ["-", "--help", "--out=/tmp/x"] {
            let found = call("estimate", &json!({ "what": what }));
            assert_eq!(found["result"]["isError"], true, "{found}");
        }
    }
}
