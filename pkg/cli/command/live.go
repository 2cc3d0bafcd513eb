package command

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// LiveKinds asks the API server for its version, so that rules use only what it knows, and prepares to ask for kinds.
// The error names the server: the usual cause is a kubeconfig for another one.
func LiveKinds(cfg *rest.Config) (pipeline.Options, error) {
	cluster, err := discovered.New(cfg)
	if err != nil {
		return pipeline.Options{}, fmt.Errorf("connecting to the API server: %w", err)
	}
	version, err := cluster.Version()
	if err != nil {
		return pipeline.Options{}, fmt.Errorf("connecting to the API server at %s: %w", cfg.Host, err)
	}
	return pipeline.Options{Kinds: cluster, Version: version}, nil
}
