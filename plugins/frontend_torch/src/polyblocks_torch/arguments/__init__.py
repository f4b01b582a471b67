"""Arguments of Dynamo's graphs: numbers that change, arrays that share memory, frozen weights."""
