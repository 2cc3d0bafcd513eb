package yamltext

// LineBreaks are the characters that end a line in YAML 1.1, which the parser's line numbers count. "\r\n" ends one
// line.
const LineBreaks = "\r\n\u0085\u2028\u2029"
