// Command dist builds the files of a release in one folder: an archive of the program and a bill of materials for each
// platform, the Helm chart, manifests, a krew manifest, and checksums. One commit, version and Go version give the same
// bytes on any machine. It publishes nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/corollary-dev/corollary/internal/tools"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "dist: %v\n", err)
		os.Exit(1) //nolint:gocritic // stop has nothing to undo
	}
}

// command reads the flags and builds the release.
func command(ctx context.Context, args []string) error {
	r := release{platforms: platforms, root: "."}
	var date string
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	flags.StringVar(&r.version, "version", "", "Version of the release, such as v1.2.3")
	flags.StringVar(&date, "date", "", "Time of the commit, in RFC 3339")
	flags.StringVar(&r.ldflags, "ldflags", "", "What the linker stamps into the program")
	flags.StringVar(&r.image, "image", "", "Image that install.yaml runs")
	flags.StringVar(&r.out, "out", "dist", "Folder to write; what it holds is removed first")
	if err := flags.Parse(args); err != nil {
		return err
	}
	err := errors.Join(r.setDate(date), r.checkVersion())
	if err != nil {
		return err
	}
	if r.helm, err = tools.Build(ctx, "helm", os.Stderr); err != nil {
		return err
	}
	return r.build(ctx)
}
