// PASSES: plan-sorts
//
// Where few of many elements are read, they are selected: of all blocks of the rows the 5 whose
// least keys come first, and of these blocks 5 elements. All elements of long rows are sorted as words, of
// short rows by rank. Keys of 64 bits stay beside their places.

// CHECK-LABEL: @main
// CHECK-NOT:     tm_tensor.sort
// CHECK:         linalg.generic {{.*}}"reduction"]}
// CHECK:           arith.minsi %{{.*}} : i32
// CHECK:         tensor.expand_shape
// CHECK:         tensor.extract_slice %{{.*}}[0, 1] [8, 4] [1, 1] : tensor<8x5xi64> to tensor<8x4xi64>
// CHECK:         tm_tensor.sort dimension(1) outs(%{{.*}} : tensor<8x1024xi64>) {
// CHECK:           arith.shrsi %{{.*}}, %c32{{.*}} : i64
// CHECK:           arith.shrsi %{{.*}}, %c32{{.*}} : i64
// CHECK:           arith.cmpi slt
// CHECK-NOT:     tm_tensor.sort
// CHECK:         linalg.generic {{.*}}"reduction"]}
// CHECK:           arith.cmpi slt, %{{.*}}, %{{.*}} : i32
// CHECK:         tm_tensor.sort dimension(1) outs(%{{.*}}, %{{.*}} : tensor<8x1024xi64>, tensor<8x1024xi32>) {
// CHECK-NEXT:    ^bb0(%[[A:.*]]: i64, %[[B:.*]]: i64, %{{.*}}: i32, %{{.*}}: i32):
// CHECK-NEXT:      arith.cmpi slt, %[[A]], %[[B]] : i64
func.func @main(%x: tensor<8x1024xi32>, %y: tensor<8x16xi32>, %z: tensor<8x1024xi64>)
    -> (tensor<8x4xi64>, tensor<8x1024xi64>, tensor<8x16xi32>, tensor<8x1024xi64>) {
  %e = tensor.empty() : tensor<8x1024xi64>
  %iota = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<8x1024xi64>) {
  ^bb0(%o: i64):
    %i = linalg.index 1 : index
    %p = arith.index_cast %i : index to i64
    linalg.yield %p : i64
  } -> tensor<8x1024xi64>
  %s:2 = tm_tensor.sort dimension(1) outs(%x, %iota : tensor<8x1024xi32>, tensor<8x1024xi64>) {
  ^bb0(%a: i32, %b: i32, %i: i64, %j: i64):
    %c = arith.cmpi sgt, %a, %b : i32
    tm_tensor.yield %c : i1
  } -> tensor<8x1024xi32>, tensor<8x1024xi64>
  %few = tensor.extract_slice %s#1[0, 1] [8, 4] [1, 1] : tensor<8x1024xi64> to tensor<8x4xi64>
  %all:2 = tm_tensor.sort dimension(1) outs(%x, %iota : tensor<8x1024xi32>, tensor<8x1024xi64>) {
  ^bb0(%a: i32, %b: i32, %i: i64, %j: i64):
    %c = arith.cmpi ult, %a, %b : i32
    tm_tensor.yield %c : i1
  } -> tensor<8x1024xi32>, tensor<8x1024xi64>
  %short = tm_tensor.sort dimension(1) outs(%y : tensor<8x16xi32>) {
  ^bb0(%a: i32, %b: i32):
    %c = arith.cmpi slt, %a, %b : i32
    tm_tensor.yield %c : i1
  } -> tensor<8x16xi32>
  %wide:2 = tm_tensor.sort dimension(1) outs(%z, %iota : tensor<8x1024xi64>, tensor<8x1024xi64>) {
  ^bb0(%a: i64, %b: i64, %i: i64, %j: i64):
    %c = arith.cmpi slt, %a, %b : i64
    tm_tensor.yield %c : i1
  } -> tensor<8x1024xi64>, tensor<8x1024xi64>
  return %few, %all#1, %short, %wide#1 : tensor<8x4xi64>, tensor<8x1024xi64>, tensor<8x16xi32>, tensor<8x1024xi64>
}

// Where sorted numbers are all that is read, keys are sorted alone. Long rows have room for parts of
// threads, and what fills it comes last.

// CHECK-LABEL: @alone
// CHECK:         linalg.fill
// CHECK:         %[[KEYS:.*]] = tensor.insert_slice %{{.*}} into %{{.*}}[70001] [15] [1] : tensor<15xi32> into tensor<70016xi32>
// CHECK:         %[[S:.*]] = tm_tensor.sort dimension(0) outs(%[[KEYS]] : tensor<70016xi32>) {
// CHECK:           arith.cmpi sgt
// CHECK:         tensor.extract_slice %[[S]][0] [70001] [1]
// CHECK:         arith.bitcast %{{.*}} : i32 to f32
func.func @alone(%k: tensor<70001xi32>, %x: tensor<70001xf32>) -> tensor<70001xf32> {
  %s:2 = "tm_tensor.sort"(%k, %x) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 0, 2>}> ({
  ^bb0(%a: i32, %b: i32, %i: f32, %j: f32):
    %c = arith.cmpi sgt, %a, %b : i32
    "tm_tensor.yield"(%c) : (i1) -> ()
  }) {polyblocks.keyed = 1 : i64} : (tensor<70001xi32>, tensor<70001xf32>) -> (tensor<70001xi32>, tensor<70001xf32>)
  return %s#1 : tensor<70001xf32>
}

// Where one place of a row is read, or two, the keys there are searched for, bit by bit, and then the
// position. A place may be an element of another tensor.

// CHECK-LABEL: @places
// CHECK-NOT:     tm_tensor.sort
// CHECK:         affine.for %{{.*}} = 0 to 8 {
// CHECK:           affine.for %{{.*}} = 0 to 32 iter_args
// CHECK:             affine.for %{{.*}} = 0 to 1024 iter_args
// CHECK:               arith.cmpi slt
// CHECK:           affine.for %{{.*}} = 0 to 11 iter_args
// CHECK:             affine.for %{{.*}} = 0 to 1024 iter_args
// CHECK:               arith.cmpi eq
// CHECK:         tensor.extract_slice %{{.*}}[2, 0] [4, 1] [1, 1] : tensor<8x1xi32> to tensor<4x1xi32>
// CHECK:         tensor.extract %{{.*}}[%{{.*}}, %c0{{.*}}] : tensor<8x1xi32>
func.func @places(%x: tensor<8x1024xi32>, %k: tensor<8x1xi64>) -> (tensor<4x1xi32>, tensor<8x1xi32>) {
  %s = tm_tensor.sort dimension(1) outs(%x : tensor<8x1024xi32>) {
  ^bb0(%a: i32, %b: i32):
    %c = arith.cmpi slt, %a, %b : i32
    tm_tensor.yield %c : i1
  } -> tensor<8x1024xi32>
  %some = tensor.extract_slice %s[2, 700] [4, 1] [1, 1] : tensor<8x1024xi32> to tensor<4x1xi32>
  %e = tensor.empty() : tensor<8x1xi32>
  %each = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%k : tensor<8x1xi64>) outs(%e : tensor<8x1xi32>) {
  ^bb0(%n: i64, %o: i32):
    %i = linalg.index 0 : index
    %p = arith.index_cast %n : i64 to index
    %y = tensor.extract %s[%i, %p] : tensor<8x1024xi32>
    linalg.yield %y : i32
  } -> tensor<8x1xi32>
  return %some, %each : tensor<4x1xi32>, tensor<8x1xi32>
}

// A place that depends on the column, too, may be any one: the rows are sorted. A row that threads
// share is searched in sweeps of their own.

// CHECK-LABEL: @others
// CHECK:         tm_tensor.sort dimension(1)
// CHECK:         scf.for %{{.*}} = %c1{{.*}} to %c32{{.*}} step %c2{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (tensor<i32>) {
// CHECK:           linalg.generic {{.*}}iterator_types = ["reduction"]}
// CHECK-NOT:     tm_tensor.sort
func.func @others(%x: tensor<8x1024xi32>, %k: tensor<8x2xi64>, %y: tensor<100000xi32>) -> (tensor<8x2xi32>, tensor<1xi32>) {
  %s = tm_tensor.sort dimension(1) outs(%x : tensor<8x1024xi32>) {
  ^bb0(%a: i32, %b: i32):
    %c = arith.cmpi slt, %a, %b : i32
    tm_tensor.yield %c : i1
  } -> tensor<8x1024xi32>
  %e = tensor.empty() : tensor<8x2xi32>
  %each = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%k : tensor<8x2xi64>) outs(%e : tensor<8x2xi32>) {
  ^bb0(%n: i64, %o: i32):
    %i = linalg.index 0 : index
    %p = arith.index_cast %n : i64 to index
    %y0 = tensor.extract %s[%i, %p] : tensor<8x1024xi32>
    linalg.yield %y0 : i32
  } -> tensor<8x2xi32>
  %l = tm_tensor.sort dimension(0) outs(%y : tensor<100000xi32>) {
  ^bb0(%a: i32, %b: i32):
    %c = arith.cmpi slt, %a, %b : i32
    tm_tensor.yield %c : i1
  } -> tensor<100000xi32>
  %one = tensor.extract_slice %l[5000] [1] [1] : tensor<100000xi32> to tensor<1xi32>
  return %each, %one : tensor<8x2xi32>, tensor<1xi32>
}
