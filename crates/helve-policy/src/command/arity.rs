//! How many words of a command name its operation: `git checkout`, `npm run dev`.

/// Programs whose operation takes two words, and prefixes that take three. All others take one.
const TWO: &str = "bazel brew bun cargo cdk cf cmake composer consul crictl deno docker eksctl firebase flyctl git go \
    gradle helm heroku hugo ip kind kubectl kustomize make mc minikube mongosh mysql mvn ng npm nvm nx openssl pip \
    pipenv pnpm poetry podman psql pulumi pyenv python rake rbenv redis-cli rustup serverless skaffold sls sst swift \
    systemctl terraform tmux turbo ufw vault vercel volta wp yarn";
const THREE: &str = "aws|az|bun run|bun x|cargo add|cargo run|consul kv|deno task|doctl|docker builder|\
    docker compose|docker container|docker image|docker network|docker volume|eksctl create|gcloud|gh|git config|\
    git remote|git stash|ip addr|ip link|ip netns|ip route|kind create|kubectl kustomize|kubectl rollout|mc admin|\
    npm exec|npm init|npm run|npm view|openssl req|openssl x509|pnpm dlx|pnpm exec|pnpm run|podman container|\
    podman image|pulumi stack|sfdx|terraform workspace|vault auth|vault kv|yarn dlx|yarn run|python -m|python3 -m";

/// Returns the words by which an approval of this command is remembered.
pub(super) fn prefix<'a>(words: &'a [&'a str]) -> &'a [&'a str] {
    let start = |count: usize| words.get(..count).map(|words| words.join(" "));
    let is_three_word =
        |count| start(count).is_some_and(|start| THREE.split('|').any(|it| it == start));
    let count = if is_three_word(2) || is_three_word(1) {
        3
    } else if words.first().is_some_and(|first| TWO.split_whitespace().any(|it| it == *first)) {
        2
    } else {
        1
    };
    &words[..count.min(words.len())]
}

#[cfg(test)]
mod tests {
    use super::prefix;

    #[test]
    fn prefixes() {
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
            assert_eq!(prefix(&words).join(" "), expected);
        }
        assert_eq!(prefix(&[]), Vec::<&str>::new());
    }
}
