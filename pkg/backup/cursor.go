package backup

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/pages"
)

// pageSize is how many objects are held at once. An object has at most about 1.5 MB.
const pageSize = 100

// cursor finds objects of a namespace in the order of their names, a page at a time.
type cursor struct {
	client dynamic.ResourceInterface
	skip   bool // there are none: the kind does not exist yet
	page   []unstructured.Unstructured
	token  string
	begun  bool
}

func (c *cursor) find(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	for !c.skip {
		for len(c.page) > 0 && c.page[0].GetName() < name {
			c.page = c.page[1:]
		}
		switch {
		case len(c.page) > 0 && c.page[0].GetName() == name:
			return &c.page[0], nil
		case len(c.page) > 0 || c.begun && c.token == "":
			return nil, nil
		}
		list, err := c.client.List(ctx, metav1.ListOptions{Limit: pageSize, Continue: c.token})
		if token := pages.Continuation(err); token != "" && token != c.token {
			c.token = token // the pages grew old: it goes on with what is there now
			continue
		}
		if err != nil {
			return nil, err
		}
		c.page, c.token, c.begun = list.Items, list.GetContinue(), true
	}
	return nil, nil
}
