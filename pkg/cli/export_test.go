package cli

// UntilSignal lets a test interrupt it as a process of its own.
var UntilSignal = untilSignal

// Connects reports whether a command has the flags of a connection to an API server.
func Connects(args []string) bool {
	cmd, _, err := newRoot(IO{}).Find(args)
	return err == nil && cmd.Flags().Lookup("kubeconfig") != nil
}
