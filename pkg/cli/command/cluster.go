package command

import (
	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/config/load"
)

// Cluster is the configs and the API server that a command is about.
type Cluster struct {
	Configs
	Connection
}

// Bind adds the flags of both. namespaceUsage says what -n means to the command; empty if it means nothing.
func (c *Cluster) Bind(cmd *cobra.Command, namespaceUsage string) {
	c.Configs.Bind(cmd)
	c.Connection.Bind(cmd, namespaceUsage)
}

// Connected is what there is once the configs are loaded without an error, and the API server is known.
type Connected struct {
	Files  []*load.File
	Config *rest.Config
	Client dynamic.Interface
}

// Connect loads the configs and prepares clients. No request is made.
func (c *Cluster) Connect(streams IO) (*Connected, error) {
	files, err := c.Valid(streams)
	if err != nil {
		return nil, err
	}
	cfg, err := c.REST()
	if err != nil {
		return nil, err
	}
	client, err := DynamicFor(cfg)
	return &Connected{Files: files, Config: cfg, Client: client}, err
}
