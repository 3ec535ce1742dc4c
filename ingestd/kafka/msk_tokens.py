"""Tokens for Amazon MSK, which are signed by packages of the extra `ingestd[aws]`."""

from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
from botocore.credentials import CredentialProvider, ReadOnlyCredentials
from botocore.session import Session

from ingestd.errors import SourceError


class _ProcessCredentials(CredentialProvider):  # type: ignore[misc]  # botocore has no types
    """The credentials of this process, renewed before they expire."""

    def __init__(self) -> None:
        super().__init__()
        self._session = Session()

    def load(self) -> ReadOnlyCredentials:
        """Return a copy of the current credentials, which a later renewal does not change.

        Raises SourceError if the process has none.
        """
        credentials = self._session.get_credentials()
        if credentials is None:
            raise SourceError(
                "this process has no AWS credentials: set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or give it a role (on EKS: IRSA or Pod Identity)"
            )
        return credentials.get_frozen_credentials()


class MskTokens:
    """The token function for the MSK clusters of an AWS region; calling it returns a new token."""

    def __init__(self, region: str) -> None:
        self._region = region
        self._credentials = _ProcessCredentials()

    def __call__(self, _: str) -> tuple[str, float, str, dict[str, str]]:
        """Return a token that is valid for 15 minutes, as a result of a `TokenFunction`.

        The principal and the extensions are empty, because the token contains the identity.
        Raises SourceError if the process has no credentials.
        """
        token, milliseconds = MSKAuthTokenProvider.generate_auth_token_from_credentials_provider(
            self._region, self._credentials
        )
        return token, milliseconds / 1000, "", {}
