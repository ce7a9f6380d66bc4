//! Finds the words of a command that name its operation: `git checkout`, `npm run dev`.

/// Programs whose operation is named by two words, the program included.
const TWO_WORDS: &str = "bazel brew bun cargo cdk cf cmake composer consul crictl deno docker eksctl firebase flyctl git go \
    gradle helm heroku hugo ip kind kubectl kustomize make mc minikube mongosh mysql mvn ng npm nvm nx openssl pip \
    pipenv pnpm poetry podman psql pulumi pyenv python rake rbenv redis-cli rustup serverless skaffold sls sst swift \
    systemctl terraform tmux turbo ufw vault vercel volta wp yarn";
/// Commands whose operation is named by three words, the program included.
const THREE_WORDS: &str = "aws|az|bun run|bun x|cargo add|cargo run|consul kv|deno task|doctl|docker builder|\
    docker compose|docker container|docker image|docker network|docker volume|eksctl create|gcloud|gh|git config|\
    git remote|git stash|ip addr|ip link|ip netns|ip route|kind create|kubectl kustomize|kubectl rollout|mc admin|\
    npm exec|npm init|npm run|npm view|openssl req|openssl x509|pnpm dlx|pnpm exec|pnpm run|podman container|\
    podman image|pulumi stack|sfdx|terraform workspace|vault auth|vault kv|yarn dlx|yarn run|python -m|python3 -m";

/// Returns the first words of a command, which name its operation: `npm run dev x` → `npm run dev`. By default that is
/// the program alone.
pub(super) fn operation<'a>(words: &'a [&'a str]) -> &'a [&'a str] {
    let start = |count: usize| words.get(..count).map(|words| words.join(" "));
    let is_three_word =
        |count| start(count).is_some_and(|start| THREE_WORDS.split('|').any(|it| it == start));
    let count = if is_three_word(2) || is_three_word(1) {
        3
    } else if words.first().is_some_and(|first| TWO_WORDS.split_whitespace().any(|it| it == *first))
    {
        2
    } else {
        1
    };
    &words[..count.min(words.len())]
}

#[cfg(test)]
mod tests {
    use super::operation;

    #[test]
    fn operations() {
        for (command, expected) in [
            ("unknown command sub", "unknown"),
            ("touch f", "touch"),
            ("git checkout main", "git checkout"),
            ("git", "git"),
            ("aws s3 ls b", "aws s3 ls"),
            ("npm run dev x", "npm run dev"),
            ("docker compose up s", "docker compose up"),
            ("cargo add serde", "cargo add serde"),
            ("python -m pytest -q", "python -m pytest"),
        ] {
            let words: Vec<&str> = command.split(' ').collect();
            assert_eq!(operation(&words).join(" "), expected);
        }
        assert_eq!(operation(&[]), Vec::<&str>::new());
    }
}
