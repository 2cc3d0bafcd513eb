package pages_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/pages"
)

func expired(token string) error {
	err := apierrors.NewResourceExpired("too old")
	err.ErrStatus.Continue = token
	return err
}

func TestEach(t *testing.T) {
	t.Parallel()
	refused, enough := errors.New("refused"), errors.New("enough")
	for _, row := range []struct {
		reason  string
		answers []any // a continue token of a page, or an error
		stop    int   // visit ends with the page of that number
		asked   []string
		visited int
		err     error
	}{
		{"one page", []any{""}, 0, []string{""}, 1, nil},
		{"three", []any{"a", "b", ""}, 0, []string{"", "a", "b"}, 3, nil},
		{"it grows old, twice", []any{"a", expired("c"), "d", expired("e"), ""}, 0, []string{"", "a", "c", "d", "e"}, 3, nil},
		{"it is too old and cannot be continued", []any{"a", expired("")}, 0, []string{"", "a"}, 1, expired("")},
		{"the token that came instead is too old, too", []any{"a", expired("c"), expired("c")}, 0, []string{"", "a", "c"}, 1, expired("c")},
		{"it is refused", []any{"a", refused}, 0, []string{"", "a"}, 1, refused},
		{"visiting ends", []any{"a", "b", ""}, 2, []string{"", "a"}, 2, enough},
	} {
		var asked []string
		visited := 0
		err := pages.Each(
			t.Context(),
			metav1.ListOptions{Limit: 7},
			func(_ context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
				answer := row.answers[len(asked)]
				if asked = append(asked, o.Continue); o.Limit != 7 {
					t.Errorf("%s: the limit is %d", row.reason, o.Limit)
				}
				if err, ok := answer.(error); ok {
					return nil, err
				}
				return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{Continue: answer.(string)}}, nil
			},
			func(*metav1.PartialObjectMetadataList) error {
				if visited++; visited == row.stop {
					return enough
				}
				return nil
			},
		)
		if !slices.Equal(asked, row.asked) || visited != row.visited || fmt.Sprint(err) != fmt.Sprint(row.err) {
			t.Errorf("%s: asked for %q, visited %d: %v", row.reason, asked, visited, err)
		}
	}
}
