// PASSES: hoist-addresses

// What an outer loop leaves unchanged is added before that loop, what differs by constants only
// has one view.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<8x64xf32>, %[[T:[a-z0-9]+]]: index
// CHECK-DAG:     %[[C64:.*]] = arith.constant 64 : index
// CHECK-DAG:     %[[C66:.*]] = arith.constant 66 : index
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK:         scf.for %[[I:.*]] =
// CHECK:           %[[ROW:.*]] = arith.muli %[[I]], %[[C64]]
// CHECK:           %[[OFFSET:.*]] = arith.addi %[[T]], %[[ROW]]
// CHECK:           %[[VIEW:.*]] = memref.reinterpret_cast %[[X]] to offset: [%[[OFFSET]]], sizes: [8, 64], strides: [64, 1]
// CHECK-NOT:       memref.reinterpret_cast
// CHECK:           scf.for %[[J:.*]] =
// CHECK:             vector.load %[[VIEW]][%[[C0]], %[[J]]]
// CHECK:             %[[NEXT:.*]] = arith.addi %[[J]], %[[C66]]
// CHECK:             vector.load %[[VIEW]][%[[C0]], %[[NEXT]]]
// CHECK:             vector.store %{{.*}}, %[[VIEW]][%[[C0]], %[[J]]]
func.func @main(%x: memref<8x64xf32>, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c7 = arith.constant 7 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %c0 to %c7 step %c1 {
    %below = arith.addi %i, %c1 : index
    scf.for %j = %c0 to %c32 step %c16 {
      %k = arith.addi %j, %t : index
      %l = arith.addi %k, %c2 : index
      %v = vector.load %x[%i, %k] : memref<8x64xf32>, vector<16xf32>
      %w = vector.load %x[%below, %l] : memref<8x64xf32>, vector<16xf32>
      %s = arith.addf %v, %w : vector<16xf32>
      vector.store %s, %x[%i, %k] : memref<8x64xf32>, vector<16xf32>
    }
  }
  return
}

// Scalars: upstream would take an index of a view that is negative for a very large one.
// CHECK-LABEL: func.func @scalars
// CHECK-SAME:    %[[Y:[a-z0-9]+]]: memref<8x64xf32>
// CHECK:         memref.load %[[Y]][
// CHECK:         memref.store %{{.*}}, %[[Y]][
func.func @scalars(%x: memref<8x64xf32>, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  scf.for %i = %c0 to %c7 step %c1 {
    %v = memref.load %x[%t, %i] : memref<8x64xf32>
    memref.store %v, %x[%i, %t] : memref<8x64xf32>
    %w = vector.load %x[%i, %c0] : memref<8x64xf32>, vector<16xf32>
    vector.store %w, %x[%c7, %c0] : memref<8x64xf32>, vector<16xf32>
  }
  return
}
