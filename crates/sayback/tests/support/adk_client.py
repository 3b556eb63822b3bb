"""The three flows of the ADK's confirmation demo, against a server, with the client and the types of the real package.

usage: adk_client.py http://127.0.0.1:PORT TOKEN small|large
Prints what comes, a line an event part; exits with 1 if the server does something else than an ADK server would.
"""

import asyncio
import sys
import warnings

warnings.filterwarnings("ignore")

from google.adk.cli.adk_web_server import RunAgentRequest  # noqa: E402
from google.adk.cli.conformance.adk_web_server_client import AdkWebServerClient  # noqa: E402
from google.adk.tools.tool_confirmation import ToolConfirmation  # noqa: E402
from google.genai import types  # noqa: E402
import httpx  # noqa: E402


class Client(AdkWebServerClient):
    """The package's client, with a token."""

    def __init__(self, url, token):
        super().__init__(base_url=url, timeout=120.0)
        self._client = httpx.AsyncClient(
            base_url=url, timeout=120.0, headers={"Authorization": f"Bearer {token}"}
        )


async def turn(client, session, message):
    pending = None
    request = RunAgentRequest(
        app_name="bank", user_id="u", session_id=session.id, new_message=message
    )
    async for event in client.run_agent(request):
        for part in event.content.parts if event.content else []:
            if part.function_call:
                print(f"  [{event.author}] function_call {part.function_call.name} args={part.function_call.args}")
                if part.function_call.name == "adk_request_confirmation":
                    pending = part.function_call
                    assert event.long_running_tool_ids == {pending.id}, event.long_running_tool_ids
            elif part.function_response:
                response = part.function_response
                print(f"  [{event.author}] function_response {response.name} -> {response.response}")
            elif part.text:
                print(f"  [{event.author}] text: {part.text}")
    return pending


def text(words):
    return types.Content(role="user", parts=[types.Part(text=words)])


def answer(call, confirmed):
    response = types.FunctionResponse(
        id=call.id,
        name="adk_request_confirmation",
        response=ToolConfirmation(confirmed=confirmed).model_dump(),
    )
    return types.Content(role="user", parts=[types.Part(function_response=response)])


async def main(url, token, kind):
    async with Client(url, token) as client:
        for label, words, decision in [
            ("small (no confirm)", "small transfer", None),
            ("large, APPROVED", "big transfer", True),
            ("large, REJECTED", "big transfer", False),
        ]:
            if not label.startswith(kind):
                continue
            session = await client.create_session(app_name="bank", user_id="u", state={"kind": label})
            print(f"== {label} ==")
            call = await turn(client, session, text(words))
            if call and decision is not None:
                print(f"  -> human responds confirmed={decision}")
                await turn(client, session, answer(call, decision))
                # Once more: consumed.
                assert await turn(client, session, answer(call, True)) is None
            kept = await client.get_session(app_name="bank", user_id="u", session_id=session.id)
            assert kept.state == {"kind": label} and kept.events[0].author == "user", kept
            await client.delete_session(app_name="bank", user_id="u", session_id=session.id)
        try:
            await client.get_session(app_name="bank", user_id="u", session_id="nobody")
            raise AssertionError("there is no such session")
        except httpx.HTTPStatusError as error:
            assert error.response.status_code == 404, error


asyncio.run(main(*sys.argv[1:]))
