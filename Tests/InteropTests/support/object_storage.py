"""A real S3-compatible server on loopback (moto), which checks signatures, in a process that can be killed."""
import os
import pathlib
import re
import subprocess
import sys
import time

import boto3
import botocore.config
import botocore.exceptions

from .server import free_ports


class ObjectStorage:
    """Its keys are made when it starts, and are others after a restart, as all that it had is gone: it keeps everything in memory."""

    def __init__(self, folder):
        (self.port,) = free_ports(1)
        self.log_path = pathlib.Path(folder) / "storage.log"
        self.credentials = pathlib.Path(folder) / "storage.keys"
        self.process = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def client(self, service, keys):
        return boto3.client(service, endpoint_url=self.url, region_name="eu-central-1", aws_access_key_id=keys[0], aws_secret_access_key=keys[1],
                            config=botocore.config.Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}))

    def start(self, bucket):
        # Three calls make a user, its policy and its key; from the fourth on each is judged.
        self.process = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
                                        env={**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "3"}, stdout=open(self.log_path, "ab"),
                                        stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 30
        while True:
            try:
                iam = self.client("iam", ("any", "any"))
                iam.create_user(UserName="recorder")
                break
            except (botocore.exceptions.EndpointConnectionError, botocore.exceptions.ConnectionClosedError):
                assert time.monotonic() < deadline and self.process.poll() is None, self.log()
                time.sleep(0.1)
        iam.put_user_policy(UserName="recorder", PolicyName="all",
                            PolicyDocument='{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}')
        key = iam.create_access_key(UserName="recorder")["AccessKey"]
        self.keys = (key["AccessKeyId"], key["SecretAccessKey"])
        self.s3 = self.client("s3", self.keys)
        self.s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
        self.credentials.write_text("\n".join(self.keys) + "\n")
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def parts(self):
        """Numbers of the parts that were sent, in order."""
        return [int(number) for number in re.findall(r'"PUT \S+partNumber=(\d+)&\S* HTTP/1.1" 200', self.log())]

    def objects(self, bucket):
        return {one["Key"]: one["Size"] for one in self.s3.list_objects_v2(Bucket=bucket).get("Contents", [])}
