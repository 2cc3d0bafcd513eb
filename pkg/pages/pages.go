// Package pages visits the objects of an API server a page at a time, however long that takes. It keeps no more than
// one page, and does not promise that all pages are of one moment.
package pages

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Each lists from the first page on and visits each one, until visit returns an error, which Each then returns. If the
// list grows too old on the way, it continues behind the last page with what is there now.
func Each[List metav1.ListInterface](ctx context.Context, options metav1.ListOptions,
	list func(context.Context, metav1.ListOptions) (List, error), visit func(List) error,
) error {
	for {
		page, err := list(ctx, options)
		if token := Continuation(err); token != "" && token != options.Continue {
			options.Continue = token
			continue
		}
		if err != nil {
			return err
		}
		if err := visit(page); err != nil {
			return err
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// Continuation is the token that comes with the answer 410 to a page of a list that is too old; empty without one.
func Continuation(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}
