//go:build controlplane && locks

package clusters

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// dynalite is where make installs the service.
const dynalite = "../../bin/dynalite/node_modules/dynalite/cli.js"

// region is what the service is said to be in; it has none.
const region = "eu-west-1"

// dynamoService is a table of one service.
type dynamoService struct{ *server }

// Config implements service.
func (s *dynamoService) Config(_ *testing.T, addr, name string) string {
	return "dynamodb: {table: locks, key: " + name + ", region: " + region + ", endpoint: \"http://" + addr + "\"}\n"
}

func startDynamoDB(t *testing.T) *dynamoService {
	t.Helper()
	if _, err := os.Stat(dynalite); err != nil {
		t.Fatalf("dynalite is missing: run make locks-test, which installs it: %v", err)
	}
	addr, dir := testkit.FreeAddress(t), t.TempDir()
	host, port, err := net.SplitHostPort(addr)
	must(t, err)
	s := &dynamoService{startServer(t, addr, func() *exec.Cmd {
		return exec.Command("node", dynalite, "--host", host, "--port", port, "--path", dir, "--createTableMs", "0")
	})}
	_, err = s.client().CreateTable(t.Context(), &dynamodb.CreateTableInput{TableName: aws.String("locks"),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: types.KeyTypeHash}}})
	must(t, err)
	eventually(t, "the table is not ready", func() bool {
		d, err := s.client().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("locks")})
		return err == nil && d.Table.TableStatus == types.TableStatusActive
	})
	return s
}

func (s *dynamoService) client() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{Region: region, BaseEndpoint: aws.String("http://" + s.addr),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")})
}

func (s *dynamoService) countsInRecord() {}

// TestDynamoDBContract: besides, a table that does not exist is named.
func TestDynamoDBContract(t *testing.T) {
	t.Parallel()
	s := startDynamoDB(t)
	key := func(name string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: name}}
	}
	contract(t, s, func(name string) {
		_, err := s.client().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("locks"), Key: key(name)})
		must(t, err)
	})
	refusesGarbage(t, s, func(name, text string) {
		item := key(name)
		item["record"], item["version"] = &types.AttributeValueMemberS{Value: text}, &types.AttributeValueMemberN{Value: "7"}
		_, err := s.client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: item})
		must(t, err)
	})
	for lock, want := range map[string]string{
		"table: other, key: a": "table other does not exist: create it, with a partition key of type String that is called key",
		"table: locks, key: a, partitionKey: name": "table locks has another key: its partition key must be name, of type String, and it must " +
			"have no sort key",
	} {
		store := openAs(t, "eu", "dynamodb: {"+lock+", region: "+region+", endpoint: \"http://"+s.addr+"\"}\n")
		if _, err := store.Get(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", lock, err)
		}
	}
}

func TestDynamoDB(t *testing.T) {
	t.Parallel()
	chaos(t, startDynamoDB(t))
}
