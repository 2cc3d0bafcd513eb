package cli

// UntilSignal lets a test interrupt it as a process of its own.
var UntilSignal = untilSignal
