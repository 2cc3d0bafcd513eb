package webhook

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	published = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_conversion_published",
		Help: "1 if spec.conversion of the CustomResourceDefinition is as it should be, or 0 if it is not.",
	}, []string{"crd"})
	expiration = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_webhook_certificate_expiration_timestamp_seconds",
		Help: "When the certificate that the conversion webhook serves expires, in seconds since 1970; secret is where it " +
			"comes from.",
	}, []string{"secret"})
	converted = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "corollary_converted_objects_total",
		Help: "Objects in ConversionReviews, by result: Converted, or Failed for all objects of a review of which one " +
			"cannot be converted.",
	}, []string{"result"})
)

func init() {
	metrics.Registry.MustRegister(published, expiration, converted)
}

// Observe counts a review; it is for convert.Handler.
func Observe(objects int, err error) {
	result := "Converted"
	if err != nil {
		result = "Failed"
	}
	converted.WithLabelValues(result).Add(float64(objects))
}
