"""A softphone (pjsua2): calls, says a tone, hears the question and answers so many milliseconds after its end.

    softphone.py HOST:PORT OFFSET_MS [srtp] [digest]

With `digest` it is anna, whose password is secret.
"""

import math
import os
import struct
import sys
import tempfile
import time
import wave

import pjsua2 as pj

SERVER, OFFSET = sys.argv[1], int(sys.argv[2])
SECURE = "srtp" in sys.argv[3:]
DIGEST = "digest" in sys.argv[3:]
# The question is eight words of 150 ms.
QUESTION = 8 * 0.15


def tone(seconds):
    file = tempfile.NamedTemporaryFile(suffix=".wav", delete=False)
    with wave.open(file.name, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(16000)
        samples = (int(9000 * math.sin(n * 0.2)) for n in range(int(16000 * seconds)))
        out.writeframes(b"".join(struct.pack("<h", sample) for sample in samples))
    return file.name


class Call(pj.Call):
    state = None
    media = None

    def onCallState(self, _):
        self.state = self.getInfo().state

    def onCallMediaState(self, _):
        info = self.getInfo()
        if info.media and info.media[0].status == pj.PJSUA_CALL_MEDIA_ACTIVE:
            self.media = self.getAudioMedia(-1)
            # Its level is only measured while somebody listens.
            self.media.startTransmit(pj.Endpoint.instance().audDevManager().getPlaybackDevMedia())


def main():
    endpoint = pj.Endpoint()
    endpoint.libCreate()
    config = pj.EpConfig()
    config.logConfig.level = 0
    config.logConfig.consoleLevel = 0
    config.uaConfig.threadCnt = 0
    config.uaConfig.mainThreadOnly = True
    # What sounds is measured, so nothing may be left out.
    config.medConfig.noVad = True
    endpoint.libInit(config)
    transport = pj.TransportConfig()
    transport.boundAddress = "127.0.0.1"
    transport.publicAddress = "127.0.0.1"
    endpoint.transportCreate(pj.PJSIP_TRANSPORT_UDP, transport)
    endpoint.libStart()
    endpoint.audDevManager().setNullDev()
    account_config = pj.AccountConfig()
    account_config.idUri = "sip:softphone@127.0.0.1"
    account_config.mediaConfig.transportConfig.boundAddress = "127.0.0.1"
    if SECURE:
        account_config.mediaConfig.srtpUse = pj.PJMEDIA_SRTP_MANDATORY
        account_config.mediaConfig.srtpSecureSignaling = 0
    if DIGEST:
        account_config.idUri = "sip:anna@test"
        account_config.sipConfig.authCreds.append(pj.AuthCredInfo("digest", "*", "anna", 0, "secret"))
    account = pj.Account()
    account.create(account_config)

    def wait(seconds, until=lambda: False):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            endpoint.libHandleEvents(5)
            if until():
                return True
        return False

    call = Call(account)
    call.makeCall(f"sip:100@{SERVER}", pj.CallOpParam(True))
    assert wait(10, lambda: call.media is not None and call.state == pj.PJSIP_INV_STATE_CONFIRMED), "not answered"

    def say(seconds):
        player = pj.AudioMediaPlayer()
        player.createPlayer(tone(seconds), pj.PJMEDIA_FILE_NO_LOOP)
        player.startTransmit(call.media)
        wait(seconds + 0.05)

    wait(1.5)
    say(0.6)
    # What the far end sends is what this port transmits into the bridge.
    wait(0.1)
    assert wait(10, lambda: call.media.getTxLevel() > 20), "no question"
    wait(QUESTION + OFFSET / 1000)
    say(0.5)
    wait(3)
    prm = pj.CallOpParam()
    call.hangup(prm)
    wait(1, lambda: call.state == pj.PJSIP_INV_STATE_DISCONNECTED)
    # The library's objects would be torn down in the wrong order.
    os._exit(0)


main()
