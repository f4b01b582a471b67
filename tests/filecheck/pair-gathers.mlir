// PASSES: pair-gathers
//
// Two gathers whose places are one element apart are one of twice the length, whichever comes first.

// CHECK-LABEL: llvm.func @pairs
// CHECK:         %[[AT:.*]] = llvm.getelementptr %arg0[%arg1]
// CHECK:         %[[WIDE:.*]] = llvm.intr.masked.gather %[[AT]], %arg2, %{{.*}} {alignment = 4 : i32} : {{.*}} -> vector<8xi64>
// CHECK:         %[[FLAT:.*]] = llvm.bitcast %[[WIDE]] : vector<8xi64> to vector<16xf32>
// CHECK:         %[[LOW:.*]] = llvm.shufflevector %[[FLAT]], %[[FLAT]] [0, 2, 4, 6, 8, 10, 12, 14]
// CHECK:         %[[HIGH:.*]] = llvm.shufflevector %[[FLAT]], %[[FLAT]] [1, 3, 5, 7, 9, 11, 13, 15]
// CHECK-NOT:     masked.gather
// CHECK:         llvm.fsub %[[LOW]], %[[HIGH]]
llvm.func @pairs(%x: !llvm.ptr, %i: vector<8xi32>, %mask: vector<8xi1>) -> vector<8xf32> {
  %zero = llvm.mlir.constant(dense<0.0> : vector<8xf32>) : vector<8xf32>
  %one = llvm.mlir.constant(dense<1> : vector<8xi32>) : vector<8xi32>
  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, vector<8xi32>) -> vector<8x!llvm.ptr>, f32
  %a = llvm.intr.masked.gather %p, %mask, %zero {alignment = 4 : i32} : (vector<8x!llvm.ptr>, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
  %j = llvm.add %i, %one : vector<8xi32>
  %q = llvm.getelementptr %x[%j] : (!llvm.ptr, vector<8xi32>) -> vector<8x!llvm.ptr>, f32
  %b = llvm.intr.masked.gather %q, %mask, %zero {alignment = 4 : i32} : (vector<8x!llvm.ptr>, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
  %d = llvm.fsub %a, %b : vector<8xf32>
  llvm.return %d : vector<8xf32>
}

// CHECK-LABEL: llvm.func @backwards
// CHECK:         %[[BACK:.*]] = llvm.mlir.constant(dense<-1> : vector<8xi32>)
// CHECK:         %[[BEFORE:.*]] = llvm.add %{{.*}}, %[[BACK]] : vector<8xi32>
// CHECK:         %[[AT:.*]] = llvm.getelementptr %arg0[%[[BEFORE]]]
// CHECK:         llvm.intr.masked.gather %[[AT]], {{.*}} -> vector<8xi64>
// CHECK-NOT:     masked.gather
llvm.func @backwards(%x: !llvm.ptr, %i: vector<8xi32>, %mask: vector<8xi1>) -> vector<8xf32> {
  %zero = llvm.mlir.constant(dense<0.0> : vector<8xf32>) : vector<8xf32>
  %two = llvm.mlir.constant(dense<2> : vector<8xi32>) : vector<8xi32>
  %three = llvm.mlir.constant(dense<3> : vector<8xi32>) : vector<8xi32>
  %double = llvm.mul %i, %two : vector<8xi32>
  %j = llvm.add %double, %three : vector<8xi32>
  %q = llvm.getelementptr %x[%j] : (!llvm.ptr, vector<8xi32>) -> vector<8x!llvm.ptr>, f32
  %b = llvm.intr.masked.gather %q, %mask, %zero {alignment = 4 : i32} : (vector<8x!llvm.ptr>, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
  %k = llvm.add %two, %double : vector<8xi32>
  %p = llvm.getelementptr %x[%k] : (!llvm.ptr, vector<8xi32>) -> vector<8x!llvm.ptr>, f32
  %a = llvm.intr.masked.gather %p, %mask, %zero {alignment = 4 : i32} : (vector<8x!llvm.ptr>, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
  %d = llvm.fsub %a, %b : vector<8xf32>
  llvm.return %d : vector<8xf32>
}

// Others stay: two elements apart, with a store between, under other masks, of 64 bits each.
//
// CHECK-LABEL: llvm.func @apart
// CHECK-COUNT-6: masked.gather {{.*}} -> vector<8xf
// CHECK-NOT:     masked.gather
llvm.func @apart(%x: !llvm.ptr, %i: vector<8xi32>, %mask: vector<8xi1>, %other: vector<8xi1>, %y: !llvm.ptr) {
  %zero = llvm.mlir.constant(dense<0.0> : vector<8xf32>) : vector<8xf32>
  %zero64 = llvm.mlir.constant(dense<0.0> : vector<8xf64>) : vector<8xf64>
  %one = llvm.mlir.constant(dense<1> : vector<8xi32>) : vector<8xi32>
  %two = llvm.mlir.constant(dense<2> : vector<8xi32>) : vector<8xi32>
  %j = llvm.add %i, %one : vector<8xi32>
  %k = llvm.add %i, %two : vector<8xi32>
  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, vector<8xi32>) -> vector<8x!llvm.ptr>, f32
  %q = llvm.getelementptr %x[%j] : (!llvm.ptr, vector<8xi32>) -> vector<8x!llvm.ptr>, f32
  %r = llvm.getelementptr %x[%k] : (!llvm.ptr, vector<8xi32>) -> vector<8x!llvm.ptr>, f32
  %a = llvm.intr.masked.gather %p, %mask, %zero {alignment = 4 : i32} : (vector<8x!llvm.ptr>, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
  %b = llvm.intr.masked.gather %r, %mask, %zero {alignment = 4 : i32} : (vector<8x!llvm.ptr>, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
  llvm.store %a, %y : vector<8xf32>, !llvm.ptr
  %c = llvm.intr.masked.gather %q, %mask, %zero {alignment = 4 : i32} : (vector<8x!llvm.ptr>, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
  %d = llvm.intr.masked.gather %p, %other, %zero {alignment = 4 : i32} : (vector<8x!llvm.ptr>, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
  llvm.store %b, %y : vector<8xf32>, !llvm.ptr
  llvm.store %c, %y : vector<8xf32>, !llvm.ptr
  llvm.store %d, %y : vector<8xf32>, !llvm.ptr
  %p64 = llvm.getelementptr %x[%i] : (!llvm.ptr, vector<8xi32>) -> vector<8x!llvm.ptr>, f64
  %q64 = llvm.getelementptr %x[%j] : (!llvm.ptr, vector<8xi32>) -> vector<8x!llvm.ptr>, f64
  %e = llvm.intr.masked.gather %p64, %mask, %zero64 {alignment = 8 : i32} : (vector<8x!llvm.ptr>, vector<8xi1>, vector<8xf64>) -> vector<8xf64>
  %f = llvm.intr.masked.gather %q64, %mask, %zero64 {alignment = 8 : i32} : (vector<8x!llvm.ptr>, vector<8xi1>, vector<8xf64>) -> vector<8xf64>
  llvm.store %e, %y : vector<8xf64>, !llvm.ptr
  llvm.store %f, %y : vector<8xf64>, !llvm.ptr
  llvm.return
}
