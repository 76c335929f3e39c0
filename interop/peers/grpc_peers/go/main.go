// Apache's gRPC client for Go behind JSON lines; one process serves all scenarios of a test module.
// Arguments: the proxy's address, "tls" or "plain". The lines are those of scenarios.py.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	rocketmq "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
)

type request struct {
	Id          int64             `json:"id"`
	Do          string            `json:"do"`
	Name        string            `json:"name"`
	Producer    string            `json:"producer"`
	Consumer    string            `json:"consumer"`
	Topic       string            `json:"topic"`
	Group       string            `json:"group"`
	Tags        string            `json:"tags"`
	Sql         *string           `json:"sql"`
	AwaitMs     int64             `json:"await_ms"`
	Body        string            `json:"body"`
	Tag         *string           `json:"tag"`
	Keys        []string          `json:"keys"`
	Message     string            `json:"message"`
	MessageGrp  *string           `json:"message_group"`
	DeliverAtMs *int64            `json:"deliver_at_ms"`
	Properties  map[string]string `json:"properties"`
	Most        int32             `json:"most"`
	InvisibleMs int64             `json:"invisible_ms"`
}

type object map[string]any

type stopper interface{ GracefulStop() error }

var (
	address  string
	writing  sync.Mutex
	started  sync.Map
	received sync.Map
	seen     sync.Map // how often a push consumer was given a message
	keys     atomic.Int64
)

func main() {
	address = os.Args[1]
	rocketmq.EnableSsl = os.Args[2] == "tls"
	rocketmq.ResetLogger()
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		var asked request
		if err := json.Unmarshal(line, &asked); err != nil {
			panic(err)
		}
		go answer(&asked)
	}
}

func answer(asked *request) {
	result, err := run(asked)
	if err != nil {
		code := int32(-1)
		if status, ok := rocketmq.AsErrRpcStatus(err); ok {
			code = status.GetCode()
		}
		said := object{"type": fmt.Sprintf("%T", err), "code": code, "message": err.Error()}
		write(object{"id": asked.Id, "error": said})
		return
	}
	write(object{"id": asked.Id, "result": result})
}

func write(value object) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	writing.Lock()
	defer writing.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

func run(asked *request) (any, error) {
	switch asked.Do {
	case "producer":
		return producer(asked)
	case "simple_consumer":
		return simpleConsumer(asked)
	case "push_consumer":
		return pushConsumer(asked)
	case "send":
		return receipt(find[rocketmq.Producer](asked.Producer).Send(context.TODO(), message(asked)))
	case "send_in_transaction":
		return sendInTransaction(asked)
	case "receive":
		return receive(asked)
	case "ack":
		view, _ := received.LoadAndDelete(asked.Message)
		return nil, find[rocketmq.SimpleConsumer](asked.Consumer).Ack(context.TODO(), view.(*rocketmq.MessageView))
	case "change_invisible":
		view, _ := received.Load(asked.Message)
		return nil, find[rocketmq.SimpleConsumer](asked.Consumer).ChangeInvisibleDuration(
			view.(*rocketmq.MessageView), milliseconds(asked.InvisibleMs))
	case "stop":
		client, found := started.LoadAndDelete(asked.Name)
		if !found {
			return false, nil
		}
		return true, client.(stopper).GracefulStop()
	}
	return nil, fmt.Errorf("no such command: %s", asked.Do)
}

func find[T any](name string) T {
	client, _ := started.Load(name)
	return client.(T)
}

func milliseconds(count int64) time.Duration { return time.Duration(count) * time.Millisecond }

func config(asked *request) *rocketmq.Config {
	return &rocketmq.Config{Endpoint: address, ConsumerGroup: asked.Group, Credentials: &credentials.SessionCredentials{}}
}

func producer(asked *request) (any, error) {
	made, err := rocketmq.NewProducer(config(asked), rocketmq.WithTopics(asked.Topic),
		rocketmq.WithTransactionChecker(&rocketmq.TransactionChecker{
			Check: func(view *rocketmq.MessageView) rocketmq.TransactionResolution {
				write(object{"event": "check", "consumer": asked.Name, "message": record(view)})
				switch view.GetProperties()["check"] {
				case "commit":
					return rocketmq.COMMIT
				case "rollback":
					return rocketmq.ROLLBACK
				}
				return rocketmq.UNKNOWN
			},
		}))
	if err != nil {
		return nil, err
	}
	started.Store(asked.Name, made)
	return asked.Name, made.Start()
}

func simpleConsumer(asked *request) (any, error) {
	made, err := rocketmq.NewSimpleConsumer(config(asked),
		rocketmq.WithSimpleAwaitDuration(milliseconds(asked.AwaitMs)),
		rocketmq.WithSimpleSubscriptionExpressions(subscription(asked)))
	if err != nil {
		return nil, err
	}
	started.Store(asked.Name, made)
	return asked.Name, made.Start()
}

func pushConsumer(asked *request) (any, error) {
	made, err := rocketmq.NewPushConsumer(config(asked),
		rocketmq.WithPushAwaitDuration(5*time.Second),
		rocketmq.WithPushSubscriptionExpressions(subscription(asked)),
		rocketmq.WithPushMessageListener(&rocketmq.FuncMessageListener{
			Consume: func(view *rocketmq.MessageView) rocketmq.ConsumerResult {
				failures, _ := strconv.ParseInt(view.GetProperties()["failures"], 10, 64)
				count, _ := seen.LoadOrStore(asked.Name+view.GetMessageId(), new(atomic.Int64))
				if count.(*atomic.Int64).Add(1) <= failures {
					write(object{"event": "refused", "consumer": asked.Name, "message": record(view)})
					return rocketmq.FAILURE
				}
				write(object{"event": "message", "consumer": asked.Name, "message": record(view)})
				return rocketmq.SUCCESS
			},
		}))
	if err != nil {
		return nil, err
	}
	started.Store(asked.Name, made)
	return asked.Name, made.Start()
}

func subscription(asked *request) map[string]*rocketmq.FilterExpression {
	if asked.Sql != nil {
		sql := rocketmq.NewFilterExpressionWithType(*asked.Sql, rocketmq.SQL92)
		return map[string]*rocketmq.FilterExpression{asked.Topic: sql}
	}
	return map[string]*rocketmq.FilterExpression{asked.Topic: rocketmq.NewFilterExpression(asked.Tags)}
}

func message(asked *request) *rocketmq.Message {
	made := &rocketmq.Message{Topic: asked.Topic, Body: []byte(asked.Body), Tag: asked.Tag}
	made.SetKeys(asked.Keys...)
	if asked.MessageGrp != nil {
		made.SetMessageGroup(*asked.MessageGrp)
	}
	if asked.DeliverAtMs != nil {
		made.SetDelayTimestamp(time.UnixMilli(*asked.DeliverAtMs))
	}
	for name, value := range asked.Properties {
		made.AddProperty(name, value)
	}
	return made
}

func receipt(sent []*rocketmq.SendReceipt, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return object{"message_id": sent[0].MessageID, "recall_handle": nil}, nil
}

func sendInTransaction(asked *request) (any, error) {
	client := find[rocketmq.Producer](asked.Producer)
	transaction := client.BeginTransaction()
	sent, err := client.SendWithTransaction(context.TODO(), message(asked), transaction)
	if err == nil && asked.Properties["local"] == "commit" {
		err = transaction.Commit()
	}
	if err == nil && asked.Properties["local"] == "rollback" {
		err = transaction.RollBack()
	}
	return receipt(sent, err)
}

func receive(asked *request) (any, error) {
	views, err := find[rocketmq.SimpleConsumer](asked.Consumer).Receive(
		context.TODO(), asked.Most, milliseconds(asked.InvisibleMs))
	if status, ok := rocketmq.AsErrRpcStatus(err); ok && status.GetCode() == int32(v2.Code_MESSAGE_NOT_FOUND) {
		return []object{}, nil // the client's way to say that there is nothing
	}
	records := []object{}
	for _, view := range views {
		records = append(records, record(view))
	}
	return records, err
}

func record(view *rocketmq.MessageView) object {
	key := strconv.FormatInt(keys.Add(1), 10)
	received.Store(key, view)
	value := object{
		"message": key, "message_id": view.GetMessageId(), "topic": view.GetTopic(), "body": string(view.GetBody()),
		"tag": view.GetTag(), "keys": append([]string{}, view.GetKeys()...), "message_group": view.GetMessageGroup(),
		"deliver_at_ms": nil, "properties": view.GetProperties(), "born_host": view.GetBornHost(), "born_ms": nil,
		"attempt": view.GetDeliveryAttempt(), "at_ms": time.Now().UnixMilli(),
	}
	if at := view.GetDeliveryTimestamp(); at != nil {
		value["deliver_at_ms"] = at.UnixMilli()
	}
	if at := view.GetBornTimestamp(); at != nil {
		value["born_ms"] = at.UnixMilli()
	}
	return value
}
