package locks

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// item is a lock that is an item in a table of DynamoDB. Each write has a version and the condition that the item has
// the one before, as in Amazon's client for locks; when it runs out is decided by those that wait, each by its own
// clock.
type item struct {
	client                 *dynamodb.Client
	table, partition, name string
	// version is that of the item that was read or written last; "" without one.
	version string
	// serviceTime is what the service reported in its last answer.
	serviceTime time.Time
}

// The attributes of an item, beside the table's partition key.
const (
	attributeRecord  = "record"
	attributeVersion = "version"
)

// openDynamoDB returns a lock that is an item in DynamoDB. It sends no request.
func openDynamoDB(f *load.ActivationFile) leadership.Store {
	d := f.DynamoDB
	open := func(ctx context.Context) (leadership.Store, error) {
		// One try for each request, which ends in time: whoever renews tries again.
		client := awshttp.NewBuildableClient().WithTimeout(RequestTimeout(f))
		options := []func(*awsconfig.LoadOptions) error{awsconfig.WithHTTPClient(client), awsconfig.WithRetryMaxAttempts(1)}
		if d.Region != "" {
			options = append(options, awsconfig.WithRegion(d.Region))
		}
		cfg, err := awsconfig.LoadDefaultConfig(ctx, options...)
		if err != nil {
			return nil, fmt.Errorf("reading the configuration of AWS: %w", err)
		}
		if cfg.Region == "" {
			return nil, f.Errorf("dynamodb.region", "set it, or AWS_REGION",
				"required value is missing: the environment names no region either")
		}
		return &item{table: d.Table, partition: d.PartitionKey, name: d.Key,
			client: dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
				if d.Endpoint != "" {
					o.BaseEndpoint = &d.Endpoint
				}
			})}, nil
	}
	return &lazy{name: "DynamoDB item " + d.Table + "/" + d.Key, open: open}
}

// ServerTime implements Timed.
func (i *item) ServerTime() (time.Time, bool) { return i.serviceTime, !i.serviceTime.IsZero() }

// Describe implements leadership.Store.
func (i *item) Describe() string { return "DynamoDB item " + i.table + "/" + i.name }

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Get implements leadership.Store. It reads what a majority has.
func (i *item) Get(ctx context.Context) (*leadership.Record, error) {
	answer, err := i.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &i.table, ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{i.partition: text(i.name)}})
	if err != nil {
		return nil, i.error(err)
	}
	i.version = ""
	i.serviceTime, _ = awsmiddleware.GetServerTime(answer.ResultMetadata)
	if len(answer.Item) == 0 {
		return nil, leadership.NotFound(i.name)
	}
	record, ok := answer.Item[attributeRecord].(*types.AttributeValueMemberS)
	version, versioned := answer.Item[attributeVersion].(*types.AttributeValueMemberN)
	if !ok || !versioned {
		return nil, notOurs(fmt.Errorf("it has no attributes %s and %s", attributeRecord, attributeVersion))
	}
	decoded, err := decodeJSON([]byte(record.Value))
	if err == nil { // else no update may succeed
		i.version = version.Value
	}
	return decoded, err
}

// Create implements leadership.Store.
func (i *item) Create(ctx context.Context, record *leadership.Record) error {
	i.version = ""
	return i.Update(ctx, record)
}

// Update implements leadership.Store. The version of a first item is the time, so that none comes back after a
// deletion.
func (i *item) Update(ctx context.Context, record *leadership.Record) error {
	doc, err := encodeJSON(record)
	if err != nil {
		return err
	}
	put := &dynamodb.PutItemInput{TableName: &i.table, ConditionExpression: aws.String("attribute_not_exists(#n)"),
		ExpressionAttributeNames: map[string]string{"#n": i.partition}}
	next := strconv.FormatInt(time.Now().UnixMicro(), 10)
	if i.version != "" {
		before, err := strconv.ParseInt(i.version, 10, 64)
		if err != nil {
			return notOurs(err)
		}
		next = strconv.FormatInt(before+1, 10)
		put.ConditionExpression = aws.String("#n = :v")
		put.ExpressionAttributeNames = map[string]string{"#n": attributeVersion}
		put.ExpressionAttributeValues = map[string]types.AttributeValue{":v": &types.AttributeValueMemberN{Value: i.version}}
	}
	put.Item = map[string]types.AttributeValue{i.partition: text(i.name), attributeRecord: text(doc),
		attributeVersion: &types.AttributeValueMemberN{Value: next}}
	if _, err := i.client.PutItem(ctx, put); err != nil {
		return i.error(err)
	}
	i.version = next
	return nil
}

// Watch implements leadership.Store.
func (i *item) Watch(context.Context, func(*leadership.Record) bool) error {
	return leadership.ErrUnwatched
}

// LeastToken implements leadership.Store: the item counts.
func (i *item) LeastToken() leadership.Token { return 0 }

// LastToken implements leadership.Store.
func (i *item) LastToken() leadership.Token { return lastToken }

// error gives errors the meaning that they have for a Store.
func (i *item) error(err error) error {
	var answer smithy.APIError
	switch {
	case errors.As(err, new(*types.ConditionalCheckFailedException)):
		return leadership.Conflict(i.name)
	case errors.As(err, new(*types.ResourceNotFoundException)):
		return fmt.Errorf("table %s does not exist: create it, with a partition key of type String that is called %s: %w",
			i.table, i.partition, err)
	case errors.As(err, &answer) && answer.ErrorCode() == "ValidationException":
		return fmt.Errorf("table %s has another key: its partition key must be %s, of type String, and it must have no "+
			"sort key: %w", i.table,
			i.partition, err)
	case errors.As(err, &answer) && answer.ErrorCode() == "AccessDeniedException":
		return leadership.Forbidden(err)
	}
	return err
}
