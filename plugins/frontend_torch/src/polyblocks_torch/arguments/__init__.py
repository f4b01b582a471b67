"""What a graph of Dynamo takes: numbers that change, arrays that share memory, frozen weights."""
