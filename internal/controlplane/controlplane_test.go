//go:build controlplane

package controlplane_test

import (
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/controlplane"
)

func TestStart(t *testing.T) {
	begin := time.Now()
	c, err := controlplane.Start(t.Context(), controlplane.Options{Controllers: []string{controlplane.GarbageCollector}, Audit: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("start", time.Since(begin))
	begin = time.Now()
	err = controlplane.InstallCRDs(t.Context(), c.Config(), crd)
	t.Log("crd", time.Since(begin), err)
	ev, err := c.ReadAudit()
	t.Log(len(ev), err)
	begin = time.Now()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Log("stop", time.Since(begin))
}

const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.tools.example.com
spec:
  group: tools.example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {size: {type: integer}}}
            status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`
