// PASSES: bind-loops
//
// The state has a buffer, which the result lends; a new state is made beside it. What updates the
// carried array is made in place.

// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[H0:.*]]: tensor<4xf32>, %[[Y0:.*]]: tensor<8x4xf32>, %[[OUT:.*]]: memref<4xf32>)
// CHECK:         bufferization.materialize_in_destination %[[H0]] in restrict writable %[[OUT]]
// CHECK:         %[[YS:.*]] = memref.alloc() : memref<8x4xf32>
// CHECK:         bufferization.materialize_in_destination %[[Y0]] in restrict writable %[[YS]]
// CHECK:         scf.for %[[I:.*]] = %c0 to %c8 step %c1 {
// CHECK:           %[[H:.*]] = bufferization.to_tensor %[[OUT]] restrict writable
// CHECK:           %[[Y:.*]] = bufferization.to_tensor %[[YS]] restrict writable
// CHECK:           %[[N:.*]] = arith.negf %[[H]]
// CHECK:           %[[U:.*]] = tensor.insert_slice %[[N]] into %[[Y]]
// CHECK:           %[[OWN:.*]] = memref.alloc() : memref<4xf32>
// CHECK:           bufferization.materialize_in_destination %[[N]] in restrict writable %[[OWN]]
// CHECK:           bufferization.materialize_in_destination %[[U]] in restrict writable %[[YS]]
// CHECK:           memref.copy %[[OWN]], %[[OUT]]
// CHECK:         }
// CHECK:         %[[R:.*]] = bufferization.to_tensor %[[YS]] restrict writable
// CHECK:         return %[[R]]
func.func @main(%h0: tensor<4xf32>, %y0: tensor<8x4xf32>, %out: memref<4xf32>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%h = %h0, %y = %y0) -> (tensor<4xf32>, tensor<8x4xf32>) {
    %n = arith.negf %h : tensor<4xf32>
    %u = tensor.insert_slice %n into %y[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<8x4xf32>
    scf.yield %n, %u : tensor<4xf32>, tensor<8x4xf32>
  }
  bufferization.materialize_in_destination %r#0 in restrict writable %out : (tensor<4xf32>, memref<4xf32>) -> ()
  return %r#1 : tensor<8x4xf32>
}

// A tensor that others use too is not made in the loop's buffer, but copied there.

// CHECK-LABEL: func.func @shared
// CHECK:         %[[B:.*]] = memref.alloc() : memref<4xf32>
// CHECK:         %[[M:.*]] = bufferization.to_buffer %{{.*}} read_only
// CHECK:         memref.copy %[[M]], %[[B]]
func.func @shared(%h0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%h = %h0) -> (tensor<4xf32>) {
    %n = arith.negf %h : tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %r, %h0 : tensor<4xf32>, tensor<4xf32>
}

// Both branches fill the buffer of the result.

// CHECK-LABEL: func.func @branch
// CHECK:         %[[B:.*]] = memref.alloc() : memref<4xf32>
// CHECK:         scf.if %{{.*}} {
// CHECK:           bufferization.materialize_in_destination %{{.*}} in restrict writable %[[B]]
// CHECK:         } else {
// CHECK:           bufferization.materialize_in_destination %{{.*}} in restrict writable %[[B]]
// CHECK:         }
// CHECK:         bufferization.to_tensor %[[B]] restrict writable
func.func @branch(%p: i1, %a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %r = scf.if %p -> (tensor<4xf32>) {
    %n = arith.negf %a : tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  } else {
    %n = arith.negf %b : tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// Of two results that are the carried tensor in one branch each, the first is made in its buffer,
// and the other one is a copy.

// CHECK-LABEL: func.func @exchanged
// CHECK:         scf.for
// CHECK:           %[[X:.*]] = bufferization.to_tensor %[[B:.*]] restrict writable
// CHECK:           %[[C:.*]] = memref.alloc() : memref<4xf32>
// CHECK:           scf.if %{{.*}} {
// CHECK:             %[[N:.*]] = arith.negf %[[X]]
// CHECK:             bufferization.materialize_in_destination %[[N]] in restrict writable %[[C]]
// CHECK:           } else {
// CHECK:             %[[E:.*]] = math.exp %[[X]]
// CHECK:             %[[M:.*]] = bufferization.to_buffer %[[X]] read_only
// CHECK:             memref.copy %[[M]], %[[C]]
// CHECK:             bufferization.materialize_in_destination %[[E]] in restrict writable %[[O:.*]] :
// CHECK:             memref.copy %[[O]], %[[B]]
// CHECK:           }
// CHECK:           bufferization.to_tensor %[[C]] restrict writable
func.func @exchanged(%p: i1, %h0: tensor<4xf32>, %y0: tensor<8x4xf32>) -> (tensor<4xf32>, tensor<8x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%h = %h0, %y = %y0) -> (tensor<4xf32>, tensor<8x4xf32>) {
    %b:2 = scf.if %p -> (tensor<4xf32>, tensor<4xf32>) {
      %n = arith.negf %h : tensor<4xf32>
      scf.yield %h, %n : tensor<4xf32>, tensor<4xf32>
    } else {
      %e = math.exp %h : tensor<4xf32>
      scf.yield %e, %h : tensor<4xf32>, tensor<4xf32>
    }
    %u = tensor.insert_slice %b#1 into %y[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<8x4xf32>
    scf.yield %b#0, %u : tensor<4xf32>, tensor<8x4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<8x4xf32>
}
