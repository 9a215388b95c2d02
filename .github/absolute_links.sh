# Make the links of README.md absolute, for PyPI's page of the release: $GITHUB_REF_NAME of
# $GITHUB_REPOSITORY.
set -eu
pictures=https://raw.githubusercontent.com/$GITHUB_REPOSITORY/$GITHUB_REF_NAME
pages=https://github.com/$GITHUB_REPOSITORY/blob/$GITHUB_REF_NAME
sed -i.before -E \
    -e "s,\]\(([^):]+\.svg)\),]($pictures/\1),g" \
    -e "s,\]\(([^):]+)\),]($pages/\1),g" README.md
rm README.md.before
