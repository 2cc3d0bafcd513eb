package command

import (
	"io"

	"github.com/go-logr/logr"
)

// IO is what a command reads and writes beside files and the API server.
type IO struct {
	In  io.Reader
	Out io.Writer // results
	Err io.Writer // errors, notes and logs
	// Env is the environment as os.Environ gives it.
	Env []string
	// Program is what the process was started as (os.Args[0]): started under a plugin's name, the command speaks of
	// itself as kubectl corollary. Empty is corollary.
	Program string
	// Logs makes a logger that of the whole process: what the client libraries log goes there too. It is nil where others
	// use those libraries in the same process, and they log as they did: their loggers cannot be changed while they run.
	Logs func(logr.Logger)
}

// Silence turns off what the client libraries log: it would be printed among the results, and what matters of it comes
// back as an error.
func (s IO) Silence() { s.Log(logr.Discard()) }

// Log makes a logger that of the process, where that is ours.
func (s IO) Log(logger logr.Logger) {
	if s.Logs != nil {
		s.Logs(logger)
	}
}
