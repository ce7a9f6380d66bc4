"""Compares Helve's requests and its reading of replies with the types of the providers' own libraries.

sdks.py PROTOCOLS COUNT, where PROTOCOLS is the example program of helve-agent. Prints a report as JSON.
"""
import json
import random
import subprocess
import sys
import typing

import pydantic

# The types use Iterable, which pydantic validates only when somebody iterates. Lists are validated at once.
iterable, typing.Iterable = typing.Iterable, typing.List
import anthropic.types as messages
import openai.types.chat as chat
import openai.types.responses as responses
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
typing.Iterable = iterable

PARAMS = {
    "chat": CompletionCreateParamsStreaming,
    "responses": ResponseCreateParamsStreaming,
    "messages": MessageCreateParamsStreaming,
}


def forbid_unknown_fields():
    """By default pydantic ignores fields that a type does not have."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("openai.types", "anthropic.types")):
            for value in vars(module).values():
                if hasattr(value, "__total__"):
                    value.__pydantic_config__ = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True)


def without_extensions(protocol, body):
    """What is sent on purpose although the types do not have it."""
    for message in body.get("messages", []):
        if protocol == "chat":
            # Servers other than OpenAI's expect their reasoning back.
            message.pop("reasoning_content", None)
    if protocol == "messages":
        # Only sent if the user configures them. The newest models do not take them any more, older ones do.
        body.pop("temperature", None)
        body.pop("top_p", None)
    for item in body.get("input", []):
        if item.get("type") == "reasoning":
            # Nothing is stored at the provider, so an id would refer to nothing.
            item.setdefault("id", "rs_1")
    return body


def places(error):
    """The deepest places at which the types do not fit. Every type of a union reports its own."""
    errors = sorted(error.errors(), key=lambda found: -len(found["loc"]))[:4]
    names = [[str(name) for name in found["loc"] if "[" not in str(name)] for found in errors]
    return [f"{'.'.join(name)}: {found['msg']}" for name, found in zip(names, errors)]


def check_bodies(program, count):
    forbid_unknown_fields()
    adapters = {name: pydantic.TypeAdapter(params) for name, params in PARAMS.items()}
    printed = subprocess.run([program, "bodies", str(count)], capture_output=True, text=True, check=True).stdout
    checked, problems = 0, []
    for line in printed.splitlines():
        generated = json.loads(line)
        protocol, body = generated["protocol"], generated["body"]
        try:
            adapters[protocol].validate_python(without_extensions(protocol, body), strict=True)
        except pydantic.ValidationError as error:
            problems.append(f"{protocol} body {generated['seed']}: {places(error)}")
        checked += 1
    return checked, problems


class Reply:
    """A random reply, and what Helve must make of its events."""

    def __init__(self, rng):
        self.rng = rng
        self.text = rng.choice(["", "Hello", "Größe 🙂\n\"x\"", "x" * 200])
        self.reasoning = rng.choice(["", "hm, let me see"])
        self.calls = [
            {"id": f"call_{n}", "name": rng.choice(["read", "edit"]), "arguments": json.dumps({"n": n, "s": "é\n"}), "form": "json"}
            for n in range(rng.randrange(0, 4))
        ]
        if not self.text and not self.calls:
            self.text = "x"
        self.is_cut = rng.random() < 0.2
        self.input, self.cached, self.output = rng.randrange(10, 1000), rng.randrange(0, 10), rng.randrange(1, 100)

    def pieces(self, text):
        while text:
            length = self.rng.randrange(1, 20)
            yield text[:length]
            text = text[length:]

    def dump(self, model):
        """Servers send null for missing fields, or leave them out."""
        return model.model_dump_json(exclude_none=self.rng.random() < 0.5)

    def expected(self):
        stop = "length" if self.is_cut else "tool_use" if self.calls else "end_turn"
        return {"text": self.text, "calls": self.calls, "reasoning": self.reasoning, "stop": stop,
                "total": self.input + self.output}


def chat_events(reply):
    def chunk(delta, finish_reason=None, **more):
        return chat.ChatCompletionChunk(id="c", created=1, model="m", object="chat.completion.chunk", **more, choices=[
            {"index": 0, "delta": delta, "finish_reason": finish_reason}])
    reply.reasoning = ""
    yield chunk({"role": "assistant", "content": ""})
    for piece in reply.pieces(reply.text):
        yield chunk({"content": piece})
    for index, call in enumerate(reply.calls):
        function = {"name": call["name"], "arguments": ""}
        yield chunk({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": function}]})
        for piece in reply.pieces(call["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, "length" if reply.is_cut else "tool_calls" if reply.calls else "stop")
    usage = {"prompt_tokens": reply.input, "completion_tokens": reply.output, "total_tokens": 0,
             "prompt_tokens_details": {"cached_tokens": reply.cached}}
    yield chat.ChatCompletionChunk(id="c", created=1, model="m", object="chat.completion.chunk", choices=[], usage=usage)


def responses_events(reply):
    numbers = iter(range(10_000))

    def event(kind, **fields):
        return kind(sequence_number=next(numbers), **fields)

    def response(status, **more):
        return responses.Response(id="r", created_at=1, model="m", object="response", output=[], parallel_tool_calls=True,
                                  tool_choice="auto", tools=[], status=status, **more)
    yield event(responses.ResponseCreatedEvent, type="response.created", response=response("in_progress"))
    yield event(responses.ResponseInProgressEvent, type="response.in_progress", response=response("in_progress"))
    index = iter(range(100))
    if reply.reasoning:
        at = next(index)
        item = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": reply.reasoning}],
                "encrypted_content": "gAAA"}
        yield event(responses.ResponseOutputItemAddedEvent, type="response.output_item.added", output_index=at,
                    item={**item, "summary": []})
        for piece in reply.pieces(reply.reasoning):
            yield event(responses.ResponseReasoningSummaryTextDeltaEvent, type="response.reasoning_summary_text.delta",
                        item_id="rs", output_index=at, summary_index=0, delta=piece)
        yield event(responses.ResponseOutputItemDoneEvent, type="response.output_item.done", output_index=at, item=item)
    if reply.text:
        at = next(index)
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        item = {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [part]}
        yield event(responses.ResponseOutputItemAddedEvent, type="response.output_item.added", output_index=at,
                    item={**item, "status": "in_progress", "content": []})
        yield event(responses.ResponseContentPartAddedEvent, type="response.content_part.added", item_id="msg",
                    output_index=at, content_index=0, part={**part, "text": ""})
        for piece in reply.pieces(reply.text):
            yield event(responses.ResponseTextDeltaEvent, type="response.output_text.delta", item_id="msg", output_index=at,
                        content_index=0, delta=piece, logprobs=[])
        yield event(responses.ResponseTextDoneEvent, type="response.output_text.done", item_id="msg", output_index=at,
                    content_index=0, text=reply.text, logprobs=[])
        yield event(responses.ResponseContentPartDoneEvent, type="response.content_part.done", item_id="msg",
                    output_index=at, content_index=0, part=part)
        yield event(responses.ResponseOutputItemDoneEvent, type="response.output_item.done", output_index=at, item=item)
    for call in reply.calls:
        yield from responses_call(reply, event, next(index), call)
    usage = {"input_tokens": reply.input, "output_tokens": reply.output, "total_tokens": 0,
             "input_tokens_details": {"cached_tokens": reply.cached, "cache_write_tokens": 0},
             "output_tokens_details": {"reasoning_tokens": 0}}
    if reply.is_cut:
        end = response("incomplete", usage=usage, incomplete_details={"reason": "max_output_tokens"})
        yield event(responses.ResponseIncompleteEvent, type="response.incomplete", response=end)
    else:
        yield event(responses.ResponseCompletedEvent, type="response.completed", response=response("completed", usage=usage))


def responses_call(reply, event, at, call):
    is_text = reply.rng.random() < 0.3
    if is_text:
        call.update(form="text", name="apply_patch", arguments="*** Begin Patch\n*** End Patch")
        item = {"type": "custom_tool_call", "id": "ctc", "call_id": call["id"], "name": call["name"], "input": call["arguments"]}
        field, kind, name = "input", responses.ResponseCustomToolCallInputDeltaEvent, "response.custom_tool_call_input.delta"
    else:
        item = {"type": "function_call", "id": "fc", "call_id": call["id"], "name": call["name"], "arguments": call["arguments"]}
        field, kind, name = "arguments", responses.ResponseFunctionCallArgumentsDeltaEvent, "response.function_call_arguments.delta"
    yield event(responses.ResponseOutputItemAddedEvent, type="response.output_item.added", output_index=at,
                item={**item, field: ""})
    for piece in reply.pieces(call["arguments"]):
        yield event(kind, type=name, item_id=item["id"], output_index=at, delta=piece)
    yield event(responses.ResponseOutputItemDoneEvent, type="response.output_item.done", output_index=at, item=item)


def messages_events(reply):
    usage = {"input_tokens": reply.input - reply.cached, "cache_read_input_tokens": reply.cached, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
               "stop_sequence": None, "usage": usage}
    yield messages.RawMessageStartEvent(type="message_start", message=message)
    blocks = []
    if reply.reasoning:
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in reply.pieces(reply.reasoning)]
        deltas += [{"type": "signature_delta", "signature": "sig"}] * 2
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas))
        blocks.append(({"type": "redacted_thinking", "data": "gAAA"}, []))
    if reply.text:
        deltas = [{"type": "text_delta", "text": piece} for piece in reply.pieces(reply.text)]
        blocks.append(({"type": "text", "text": ""}, deltas))
    for call in reply.calls:
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in reply.pieces(call["arguments"])]
        blocks.append(({"type": "tool_use", "id": call["id"], "name": call["name"], "input": {}}, deltas))
    for index, (block, deltas) in enumerate(blocks):
        yield messages.RawContentBlockStartEvent(type="content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield messages.RawContentBlockDeltaEvent(type="content_block_delta", index=index, delta=delta)
        yield messages.RawContentBlockStopEvent(type="content_block_stop", index=index)
    stop = "max_tokens" if reply.is_cut else "tool_use" if reply.calls else "end_turn"
    yield messages.RawMessageDeltaEvent(type="message_delta", delta={"stop_reason": stop, "stop_sequence": None},
                                        usage={"output_tokens": reply.output})
    yield messages.RawMessageStopEvent(type="message_stop")


def check_streams(program, count):
    lines, expected = [], []
    for protocol, events in [("chat", chat_events), ("responses", responses_events), ("messages", messages_events)]:
        for seed in range(count):
            reply = Reply(random.Random(seed))
            data = [reply.dump(event) for event in events(reply)]
            if protocol == "chat":
                data.append("[DONE]")
            lines.append(json.dumps({"protocol": protocol, "events": data}))
            expected.append((protocol, seed, reply.expected()))
    printed = subprocess.run([program, "replies"], input="\n".join(lines), capture_output=True, text=True, check=True).stdout
    problems, understood = [], printed.splitlines()
    for (protocol, seed, wanted), line in zip(expected, understood, strict=True):
        found = json.loads(line)
        if "failure" not in found:
            usage = found.pop("usage") or {}
            found["total"] = sum(usage.values())
            found["reasoning"] = "".join(block["text"] for block in found["reasoning"])
        if found != wanted:
            problems.append(f"{protocol} stream {seed}: expected {wanted}, found {found}")
    return len(understood), problems


def main():
    program, count = sys.argv[1], int(sys.argv[2])
    bodies, body_problems = check_bodies(program, count)
    streams, stream_problems = check_streams(program, count)
    print(json.dumps({"bodies": bodies, "streams": streams, "problems": body_problems + stream_problems}))


main()
