"""Access tokens made without Martlet's own code, so that the tests also prove that ordinary JWT libraries' tokens work."""
import base64
import hashlib
import hmac
import json
import time

KEY, SECRET = "devkey", "devsecret-devsecret-devsecret-00"


def token(identity, room=None, *, key=KEY, secret=SECRET, lifetime_s=600, name=None, issued_at=None, token_id=None, **grants):
    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")

    now = int(time.time())
    video = {"roomJoin": True, "canPublish": True, "canSubscribe": True, **grants}
    if room is not None:
        video["room"] = room
    claims = {"iss": key, "sub": identity, "nbf": now - 5, "iat": now if issued_at is None else issued_at, "exp": now + lifetime_s, "video": video}
    if token_id:
        claims["jti"] = token_id
    if name:
        claims["name"] = name
    signed = part({"alg": "HS256", "typ": "JWT"}) + b"." + part(claims)
    signature = base64.urlsafe_b64encode(hmac.new(secret.encode(), signed, hashlib.sha256).digest()).rstrip(b"=")
    return (signed + b"." + signature).decode()


def admin_token():
    return token("operator", roomList=True, roomAdmin=True, roomCreate=True)
