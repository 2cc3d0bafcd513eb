// Command corollary keeps in a cluster what follows from custom resources. Everything is in package cli.
package main

import (
	"os"

	"github.com/corollary-dev/corollary/pkg/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], cli.System())) }
