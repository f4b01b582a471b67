// PASSES: classify-nests,roll-sums
//
// A sum of nine shifts of an array, each of which goes through a chain of operations and has a factor
// of its own, is a loop over three by three shifts; the factors are a table, in which the one that the
// program leaves out is 1. The same with terms of which the result of one is used again stays as it
// is.

// CHECK-DAG:     memref.global "private" constant @[[TABLE:.*]] : memref<3x3xf32> = dense<{{\[}}[1.000000e+01, 1.100000e+01, 1.200000e+01], [1.300000e+01, 1.000000e+00, 1.500000e+01], [1.600000e+01, 1.700000e+01, 1.800000e+01]]>
// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[K:.*]] = 0 to 3 {
// CHECK-NEXT:      affine.for %[[L:.*]] = 0 to 3 {
// CHECK-NEXT:        affine.for %[[I:.*]] = 0 to 30 {
// CHECK-NEXT:          affine.for %[[J:.*]] = 0 to 30 {
// CHECK-NEXT:            affine.load %arg0[%[[I]] + %[[K]], %[[J]] + %[[L]]] : memref<32x32xf32>
// CHECK:         affine.for %[[K:.*]] = 0 to 3 {
// CHECK:           %[[F:.*]] = affine.load %{{.*}}[%{{.*}}, %{{.*}}] : memref<3x3xf32>
// CHECK:           arith.mulf %{{.*}}, %[[F]]
// CHECK:           affine.store %{{.*}} : memref<3x3x30x30xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 30 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 30 {
// CHECK-NEXT:        %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:        affine.for %[[K:.*]] = 0 to 3 iter_args(%{{.*}} = %[[ZERO]]) -> (f32) {
// CHECK-NEXT:          affine.for %[[L:.*]] = 0 to 3 iter_args(
// CHECK-NEXT:            %[[T:.*]] = affine.load %{{.*}}[%[[K]], %[[L]], %[[I]], %[[J]]]
// CHECK-NEXT:            arith.addf %{{.*}}, %[[T]]
// CHECK:             affine.store %{{.*}}, %arg1[%[[I]], %[[J]]] : memref<30x30xf32>
//
// CHECK-COUNT-27: affine.for %{{.*}} = 0 to 29 {
func.func @main(%a: memref<32x32xf32>, %b: memref<30x30xf32>, %c: memref<29x29xf32>,
                %d: memref<29x29xf32>) {
  // Nine shifts.
  %bt0 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %v0 = affine.load %a[%i + 0, %j + 0] : memref<32x32xf32>
    %v1 = math.sin %v0 : f32 %v2 = math.absf %v1 : f32 %v3 = math.absf %v2 : f32 %v4 = math.absf %v3 : f32 %v5 = math.absf %v4 : f32 %v6 = math.absf %v5 : f32 %v7 = math.absf %v6 : f32 %v8 = math.absf %v7 : f32 %v9 = math.absf %v8 : f32
    %v10 = math.absf %v9 : f32 %v11 = math.absf %v10 : f32 %v12 = math.absf %v11 : f32 %v13 = math.absf %v12 : f32 %v14 = math.absf %v13 : f32 %v15 = math.absf %v14 : f32 %v16 = math.absf %v15 : f32 %v17 = math.absf %v16 : f32 %v18 = math.absf %v17 : f32
    %v19 = math.absf %v18 : f32 %v20 = math.absf %v19 : f32 %v21 = math.absf %v20 : f32 %v22 = math.absf %v21 : f32 %v23 = math.absf %v22 : f32 %v24 = math.absf %v23 : f32 %v25 = math.absf %v24 : f32 %v26 = math.absf %v25 : f32 %v27 = math.absf %v26 : f32
    %v28 = math.absf %v27 : f32 %v29 = math.absf %v28 : f32 %v30 = math.absf %v29 : f32 %v31 = math.absf %v30 : f32 %v32 = math.absf %v31 : f32 %v33 = math.absf %v32 : f32 %v34 = math.absf %v33 : f32 %v35 = math.absf %v34 : f32 %v36 = math.absf %v35 : f32
    %v37 = math.absf %v36 : f32 %v38 = math.absf %v37 : f32 %v39 = math.absf %v38 : f32 %v40 = math.absf %v39 : f32 %v41 = math.absf %v40 : f32 %v42 = math.absf %v41 : f32 %v43 = math.absf %v42 : f32 %v44 = math.absf %v43 : f32 %v45 = math.absf %v44 : f32
    %v46 = math.absf %v45 : f32 %v47 = math.absf %v46 : f32 %v48 = math.absf %v47 : f32 %v49 = math.absf %v48 : f32 %v50 = math.absf %v49 : f32 %v51 = math.absf %v50 : f32 %v52 = math.absf %v51 : f32 %v53 = math.absf %v52 : f32 %v54 = math.absf %v53 : f32
    %v55 = math.absf %v54 : f32 %v56 = math.absf %v55 : f32 %v57 = math.absf %v56 : f32 %v58 = math.absf %v57 : f32 %v59 = math.absf %v58 : f32 %v60 = math.absf %v59 : f32 %v61 = math.absf %v60 : f32 %v62 = math.absf %v61 : f32 %v63 = math.absf %v62 : f32
    %v64 = math.absf %v63 : f32 %v65 = math.absf %v64 : f32 %v66 = math.absf %v65 : f32 %v67 = math.absf %v66 : f32 %v68 = math.absf %v67 : f32 %v69 = math.absf %v68 : f32 %v70 = math.absf %v69 : f32 %v71 = math.absf %v70 : f32 %v72 = math.absf %v71 : f32
    affine.store %v72, %bt0[%i, %j] : memref<30x30xf32> } }
  %bw0 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %x = affine.load %bt0[%i, %j] : memref<30x30xf32>
    %f = arith.constant 10.0 : f32
    %y = arith.mulf %x, %f : f32
    affine.store %y, %bw0[%i, %j] : memref<30x30xf32> } }
  %bs0 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %s = arith.constant 0.0 : f32
    %x = affine.load %bw0[%i, %j] : memref<30x30xf32>
    %y = arith.addf %s, %x : f32
    affine.store %y, %bs0[%i, %j] : memref<30x30xf32> } }
  %bt1 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %v0 = affine.load %a[%i + 0, %j + 1] : memref<32x32xf32>
    %v1 = math.sin %v0 : f32 %v2 = math.absf %v1 : f32 %v3 = math.absf %v2 : f32 %v4 = math.absf %v3 : f32 %v5 = math.absf %v4 : f32 %v6 = math.absf %v5 : f32 %v7 = math.absf %v6 : f32 %v8 = math.absf %v7 : f32 %v9 = math.absf %v8 : f32
    %v10 = math.absf %v9 : f32 %v11 = math.absf %v10 : f32 %v12 = math.absf %v11 : f32 %v13 = math.absf %v12 : f32 %v14 = math.absf %v13 : f32 %v15 = math.absf %v14 : f32 %v16 = math.absf %v15 : f32 %v17 = math.absf %v16 : f32 %v18 = math.absf %v17 : f32
    %v19 = math.absf %v18 : f32 %v20 = math.absf %v19 : f32 %v21 = math.absf %v20 : f32 %v22 = math.absf %v21 : f32 %v23 = math.absf %v22 : f32 %v24 = math.absf %v23 : f32 %v25 = math.absf %v24 : f32 %v26 = math.absf %v25 : f32 %v27 = math.absf %v26 : f32
    %v28 = math.absf %v27 : f32 %v29 = math.absf %v28 : f32 %v30 = math.absf %v29 : f32 %v31 = math.absf %v30 : f32 %v32 = math.absf %v31 : f32 %v33 = math.absf %v32 : f32 %v34 = math.absf %v33 : f32 %v35 = math.absf %v34 : f32 %v36 = math.absf %v35 : f32
    %v37 = math.absf %v36 : f32 %v38 = math.absf %v37 : f32 %v39 = math.absf %v38 : f32 %v40 = math.absf %v39 : f32 %v41 = math.absf %v40 : f32 %v42 = math.absf %v41 : f32 %v43 = math.absf %v42 : f32 %v44 = math.absf %v43 : f32 %v45 = math.absf %v44 : f32
    %v46 = math.absf %v45 : f32 %v47 = math.absf %v46 : f32 %v48 = math.absf %v47 : f32 %v49 = math.absf %v48 : f32 %v50 = math.absf %v49 : f32 %v51 = math.absf %v50 : f32 %v52 = math.absf %v51 : f32 %v53 = math.absf %v52 : f32 %v54 = math.absf %v53 : f32
    %v55 = math.absf %v54 : f32 %v56 = math.absf %v55 : f32 %v57 = math.absf %v56 : f32 %v58 = math.absf %v57 : f32 %v59 = math.absf %v58 : f32 %v60 = math.absf %v59 : f32 %v61 = math.absf %v60 : f32 %v62 = math.absf %v61 : f32 %v63 = math.absf %v62 : f32
    %v64 = math.absf %v63 : f32 %v65 = math.absf %v64 : f32 %v66 = math.absf %v65 : f32 %v67 = math.absf %v66 : f32 %v68 = math.absf %v67 : f32 %v69 = math.absf %v68 : f32 %v70 = math.absf %v69 : f32 %v71 = math.absf %v70 : f32 %v72 = math.absf %v71 : f32
    affine.store %v72, %bt1[%i, %j] : memref<30x30xf32> } }
  %bw1 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %x = affine.load %bt1[%i, %j] : memref<30x30xf32>
    %f = arith.constant 11.0 : f32
    %y = arith.mulf %x, %f : f32
    affine.store %y, %bw1[%i, %j] : memref<30x30xf32> } }
  %bs1 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %s = affine.load %bs0[%i, %j] : memref<30x30xf32>
    %x = affine.load %bw1[%i, %j] : memref<30x30xf32>
    %y = arith.addf %s, %x : f32
    affine.store %y, %bs1[%i, %j] : memref<30x30xf32> } }
  %bt2 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %v0 = affine.load %a[%i + 0, %j + 2] : memref<32x32xf32>
    %v1 = math.sin %v0 : f32 %v2 = math.absf %v1 : f32 %v3 = math.absf %v2 : f32 %v4 = math.absf %v3 : f32 %v5 = math.absf %v4 : f32 %v6 = math.absf %v5 : f32 %v7 = math.absf %v6 : f32 %v8 = math.absf %v7 : f32 %v9 = math.absf %v8 : f32
    %v10 = math.absf %v9 : f32 %v11 = math.absf %v10 : f32 %v12 = math.absf %v11 : f32 %v13 = math.absf %v12 : f32 %v14 = math.absf %v13 : f32 %v15 = math.absf %v14 : f32 %v16 = math.absf %v15 : f32 %v17 = math.absf %v16 : f32 %v18 = math.absf %v17 : f32
    %v19 = math.absf %v18 : f32 %v20 = math.absf %v19 : f32 %v21 = math.absf %v20 : f32 %v22 = math.absf %v21 : f32 %v23 = math.absf %v22 : f32 %v24 = math.absf %v23 : f32 %v25 = math.absf %v24 : f32 %v26 = math.absf %v25 : f32 %v27 = math.absf %v26 : f32
    %v28 = math.absf %v27 : f32 %v29 = math.absf %v28 : f32 %v30 = math.absf %v29 : f32 %v31 = math.absf %v30 : f32 %v32 = math.absf %v31 : f32 %v33 = math.absf %v32 : f32 %v34 = math.absf %v33 : f32 %v35 = math.absf %v34 : f32 %v36 = math.absf %v35 : f32
    %v37 = math.absf %v36 : f32 %v38 = math.absf %v37 : f32 %v39 = math.absf %v38 : f32 %v40 = math.absf %v39 : f32 %v41 = math.absf %v40 : f32 %v42 = math.absf %v41 : f32 %v43 = math.absf %v42 : f32 %v44 = math.absf %v43 : f32 %v45 = math.absf %v44 : f32
    %v46 = math.absf %v45 : f32 %v47 = math.absf %v46 : f32 %v48 = math.absf %v47 : f32 %v49 = math.absf %v48 : f32 %v50 = math.absf %v49 : f32 %v51 = math.absf %v50 : f32 %v52 = math.absf %v51 : f32 %v53 = math.absf %v52 : f32 %v54 = math.absf %v53 : f32
    %v55 = math.absf %v54 : f32 %v56 = math.absf %v55 : f32 %v57 = math.absf %v56 : f32 %v58 = math.absf %v57 : f32 %v59 = math.absf %v58 : f32 %v60 = math.absf %v59 : f32 %v61 = math.absf %v60 : f32 %v62 = math.absf %v61 : f32 %v63 = math.absf %v62 : f32
    %v64 = math.absf %v63 : f32 %v65 = math.absf %v64 : f32 %v66 = math.absf %v65 : f32 %v67 = math.absf %v66 : f32 %v68 = math.absf %v67 : f32 %v69 = math.absf %v68 : f32 %v70 = math.absf %v69 : f32 %v71 = math.absf %v70 : f32 %v72 = math.absf %v71 : f32
    affine.store %v72, %bt2[%i, %j] : memref<30x30xf32> } }
  %bw2 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %x = affine.load %bt2[%i, %j] : memref<30x30xf32>
    %f = arith.constant 12.0 : f32
    %y = arith.mulf %x, %f : f32
    affine.store %y, %bw2[%i, %j] : memref<30x30xf32> } }
  %bs2 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %s = affine.load %bs1[%i, %j] : memref<30x30xf32>
    %x = affine.load %bw2[%i, %j] : memref<30x30xf32>
    %y = arith.addf %s, %x : f32
    affine.store %y, %bs2[%i, %j] : memref<30x30xf32> } }
  %bt3 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %v0 = affine.load %a[%i + 1, %j + 0] : memref<32x32xf32>
    %v1 = math.sin %v0 : f32 %v2 = math.absf %v1 : f32 %v3 = math.absf %v2 : f32 %v4 = math.absf %v3 : f32 %v5 = math.absf %v4 : f32 %v6 = math.absf %v5 : f32 %v7 = math.absf %v6 : f32 %v8 = math.absf %v7 : f32 %v9 = math.absf %v8 : f32
    %v10 = math.absf %v9 : f32 %v11 = math.absf %v10 : f32 %v12 = math.absf %v11 : f32 %v13 = math.absf %v12 : f32 %v14 = math.absf %v13 : f32 %v15 = math.absf %v14 : f32 %v16 = math.absf %v15 : f32 %v17 = math.absf %v16 : f32 %v18 = math.absf %v17 : f32
    %v19 = math.absf %v18 : f32 %v20 = math.absf %v19 : f32 %v21 = math.absf %v20 : f32 %v22 = math.absf %v21 : f32 %v23 = math.absf %v22 : f32 %v24 = math.absf %v23 : f32 %v25 = math.absf %v24 : f32 %v26 = math.absf %v25 : f32 %v27 = math.absf %v26 : f32
    %v28 = math.absf %v27 : f32 %v29 = math.absf %v28 : f32 %v30 = math.absf %v29 : f32 %v31 = math.absf %v30 : f32 %v32 = math.absf %v31 : f32 %v33 = math.absf %v32 : f32 %v34 = math.absf %v33 : f32 %v35 = math.absf %v34 : f32 %v36 = math.absf %v35 : f32
    %v37 = math.absf %v36 : f32 %v38 = math.absf %v37 : f32 %v39 = math.absf %v38 : f32 %v40 = math.absf %v39 : f32 %v41 = math.absf %v40 : f32 %v42 = math.absf %v41 : f32 %v43 = math.absf %v42 : f32 %v44 = math.absf %v43 : f32 %v45 = math.absf %v44 : f32
    %v46 = math.absf %v45 : f32 %v47 = math.absf %v46 : f32 %v48 = math.absf %v47 : f32 %v49 = math.absf %v48 : f32 %v50 = math.absf %v49 : f32 %v51 = math.absf %v50 : f32 %v52 = math.absf %v51 : f32 %v53 = math.absf %v52 : f32 %v54 = math.absf %v53 : f32
    %v55 = math.absf %v54 : f32 %v56 = math.absf %v55 : f32 %v57 = math.absf %v56 : f32 %v58 = math.absf %v57 : f32 %v59 = math.absf %v58 : f32 %v60 = math.absf %v59 : f32 %v61 = math.absf %v60 : f32 %v62 = math.absf %v61 : f32 %v63 = math.absf %v62 : f32
    %v64 = math.absf %v63 : f32 %v65 = math.absf %v64 : f32 %v66 = math.absf %v65 : f32 %v67 = math.absf %v66 : f32 %v68 = math.absf %v67 : f32 %v69 = math.absf %v68 : f32 %v70 = math.absf %v69 : f32 %v71 = math.absf %v70 : f32 %v72 = math.absf %v71 : f32
    affine.store %v72, %bt3[%i, %j] : memref<30x30xf32> } }
  %bw3 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %x = affine.load %bt3[%i, %j] : memref<30x30xf32>
    %f = arith.constant 13.0 : f32
    %y = arith.mulf %x, %f : f32
    affine.store %y, %bw3[%i, %j] : memref<30x30xf32> } }
  %bs3 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %s = affine.load %bs2[%i, %j] : memref<30x30xf32>
    %x = affine.load %bw3[%i, %j] : memref<30x30xf32>
    %y = arith.addf %s, %x : f32
    affine.store %y, %bs3[%i, %j] : memref<30x30xf32> } }
  %bt4 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %v0 = affine.load %a[%i + 1, %j + 1] : memref<32x32xf32>
    %v1 = math.sin %v0 : f32 %v2 = math.absf %v1 : f32 %v3 = math.absf %v2 : f32 %v4 = math.absf %v3 : f32 %v5 = math.absf %v4 : f32 %v6 = math.absf %v5 : f32 %v7 = math.absf %v6 : f32 %v8 = math.absf %v7 : f32 %v9 = math.absf %v8 : f32
    %v10 = math.absf %v9 : f32 %v11 = math.absf %v10 : f32 %v12 = math.absf %v11 : f32 %v13 = math.absf %v12 : f32 %v14 = math.absf %v13 : f32 %v15 = math.absf %v14 : f32 %v16 = math.absf %v15 : f32 %v17 = math.absf %v16 : f32 %v18 = math.absf %v17 : f32
    %v19 = math.absf %v18 : f32 %v20 = math.absf %v19 : f32 %v21 = math.absf %v20 : f32 %v22 = math.absf %v21 : f32 %v23 = math.absf %v22 : f32 %v24 = math.absf %v23 : f32 %v25 = math.absf %v24 : f32 %v26 = math.absf %v25 : f32 %v27 = math.absf %v26 : f32
    %v28 = math.absf %v27 : f32 %v29 = math.absf %v28 : f32 %v30 = math.absf %v29 : f32 %v31 = math.absf %v30 : f32 %v32 = math.absf %v31 : f32 %v33 = math.absf %v32 : f32 %v34 = math.absf %v33 : f32 %v35 = math.absf %v34 : f32 %v36 = math.absf %v35 : f32
    %v37 = math.absf %v36 : f32 %v38 = math.absf %v37 : f32 %v39 = math.absf %v38 : f32 %v40 = math.absf %v39 : f32 %v41 = math.absf %v40 : f32 %v42 = math.absf %v41 : f32 %v43 = math.absf %v42 : f32 %v44 = math.absf %v43 : f32 %v45 = math.absf %v44 : f32
    %v46 = math.absf %v45 : f32 %v47 = math.absf %v46 : f32 %v48 = math.absf %v47 : f32 %v49 = math.absf %v48 : f32 %v50 = math.absf %v49 : f32 %v51 = math.absf %v50 : f32 %v52 = math.absf %v51 : f32 %v53 = math.absf %v52 : f32 %v54 = math.absf %v53 : f32
    %v55 = math.absf %v54 : f32 %v56 = math.absf %v55 : f32 %v57 = math.absf %v56 : f32 %v58 = math.absf %v57 : f32 %v59 = math.absf %v58 : f32 %v60 = math.absf %v59 : f32 %v61 = math.absf %v60 : f32 %v62 = math.absf %v61 : f32 %v63 = math.absf %v62 : f32
    %v64 = math.absf %v63 : f32 %v65 = math.absf %v64 : f32 %v66 = math.absf %v65 : f32 %v67 = math.absf %v66 : f32 %v68 = math.absf %v67 : f32 %v69 = math.absf %v68 : f32 %v70 = math.absf %v69 : f32 %v71 = math.absf %v70 : f32 %v72 = math.absf %v71 : f32
    affine.store %v72, %bt4[%i, %j] : memref<30x30xf32> } }
  %bs4 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %s = affine.load %bs3[%i, %j] : memref<30x30xf32>
    %x = affine.load %bt4[%i, %j] : memref<30x30xf32>
    %y = arith.addf %s, %x : f32
    affine.store %y, %bs4[%i, %j] : memref<30x30xf32> } }
  %bt5 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %v0 = affine.load %a[%i + 1, %j + 2] : memref<32x32xf32>
    %v1 = math.sin %v0 : f32 %v2 = math.absf %v1 : f32 %v3 = math.absf %v2 : f32 %v4 = math.absf %v3 : f32 %v5 = math.absf %v4 : f32 %v6 = math.absf %v5 : f32 %v7 = math.absf %v6 : f32 %v8 = math.absf %v7 : f32 %v9 = math.absf %v8 : f32
    %v10 = math.absf %v9 : f32 %v11 = math.absf %v10 : f32 %v12 = math.absf %v11 : f32 %v13 = math.absf %v12 : f32 %v14 = math.absf %v13 : f32 %v15 = math.absf %v14 : f32 %v16 = math.absf %v15 : f32 %v17 = math.absf %v16 : f32 %v18 = math.absf %v17 : f32
    %v19 = math.absf %v18 : f32 %v20 = math.absf %v19 : f32 %v21 = math.absf %v20 : f32 %v22 = math.absf %v21 : f32 %v23 = math.absf %v22 : f32 %v24 = math.absf %v23 : f32 %v25 = math.absf %v24 : f32 %v26 = math.absf %v25 : f32 %v27 = math.absf %v26 : f32
    %v28 = math.absf %v27 : f32 %v29 = math.absf %v28 : f32 %v30 = math.absf %v29 : f32 %v31 = math.absf %v30 : f32 %v32 = math.absf %v31 : f32 %v33 = math.absf %v32 : f32 %v34 = math.absf %v33 : f32 %v35 = math.absf %v34 : f32 %v36 = math.absf %v35 : f32
    %v37 = math.absf %v36 : f32 %v38 = math.absf %v37 : f32 %v39 = math.absf %v38 : f32 %v40 = math.absf %v39 : f32 %v41 = math.absf %v40 : f32 %v42 = math.absf %v41 : f32 %v43 = math.absf %v42 : f32 %v44 = math.absf %v43 : f32 %v45 = math.absf %v44 : f32
    %v46 = math.absf %v45 : f32 %v47 = math.absf %v46 : f32 %v48 = math.absf %v47 : f32 %v49 = math.absf %v48 : f32 %v50 = math.absf %v49 : f32 %v51 = math.absf %v50 : f32 %v52 = math.absf %v51 : f32 %v53 = math.absf %v52 : f32 %v54 = math.absf %v53 : f32
    %v55 = math.absf %v54 : f32 %v56 = math.absf %v55 : f32 %v57 = math.absf %v56 : f32 %v58 = math.absf %v57 : f32 %v59 = math.absf %v58 : f32 %v60 = math.absf %v59 : f32 %v61 = math.absf %v60 : f32 %v62 = math.absf %v61 : f32 %v63 = math.absf %v62 : f32
    %v64 = math.absf %v63 : f32 %v65 = math.absf %v64 : f32 %v66 = math.absf %v65 : f32 %v67 = math.absf %v66 : f32 %v68 = math.absf %v67 : f32 %v69 = math.absf %v68 : f32 %v70 = math.absf %v69 : f32 %v71 = math.absf %v70 : f32 %v72 = math.absf %v71 : f32
    affine.store %v72, %bt5[%i, %j] : memref<30x30xf32> } }
  %bw5 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %x = affine.load %bt5[%i, %j] : memref<30x30xf32>
    %f = arith.constant 15.0 : f32
    %y = arith.mulf %x, %f : f32
    affine.store %y, %bw5[%i, %j] : memref<30x30xf32> } }
  %bs5 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %s = affine.load %bs4[%i, %j] : memref<30x30xf32>
    %x = affine.load %bw5[%i, %j] : memref<30x30xf32>
    %y = arith.addf %s, %x : f32
    affine.store %y, %bs5[%i, %j] : memref<30x30xf32> } }
  %bt6 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %v0 = affine.load %a[%i + 2, %j + 0] : memref<32x32xf32>
    %v1 = math.sin %v0 : f32 %v2 = math.absf %v1 : f32 %v3 = math.absf %v2 : f32 %v4 = math.absf %v3 : f32 %v5 = math.absf %v4 : f32 %v6 = math.absf %v5 : f32 %v7 = math.absf %v6 : f32 %v8 = math.absf %v7 : f32 %v9 = math.absf %v8 : f32
    %v10 = math.absf %v9 : f32 %v11 = math.absf %v10 : f32 %v12 = math.absf %v11 : f32 %v13 = math.absf %v12 : f32 %v14 = math.absf %v13 : f32 %v15 = math.absf %v14 : f32 %v16 = math.absf %v15 : f32 %v17 = math.absf %v16 : f32 %v18 = math.absf %v17 : f32
    %v19 = math.absf %v18 : f32 %v20 = math.absf %v19 : f32 %v21 = math.absf %v20 : f32 %v22 = math.absf %v21 : f32 %v23 = math.absf %v22 : f32 %v24 = math.absf %v23 : f32 %v25 = math.absf %v24 : f32 %v26 = math.absf %v25 : f32 %v27 = math.absf %v26 : f32
    %v28 = math.absf %v27 : f32 %v29 = math.absf %v28 : f32 %v30 = math.absf %v29 : f32 %v31 = math.absf %v30 : f32 %v32 = math.absf %v31 : f32 %v33 = math.absf %v32 : f32 %v34 = math.absf %v33 : f32 %v35 = math.absf %v34 : f32 %v36 = math.absf %v35 : f32
    %v37 = math.absf %v36 : f32 %v38 = math.absf %v37 : f32 %v39 = math.absf %v38 : f32 %v40 = math.absf %v39 : f32 %v41 = math.absf %v40 : f32 %v42 = math.absf %v41 : f32 %v43 = math.absf %v42 : f32 %v44 = math.absf %v43 : f32 %v45 = math.absf %v44 : f32
    %v46 = math.absf %v45 : f32 %v47 = math.absf %v46 : f32 %v48 = math.absf %v47 : f32 %v49 = math.absf %v48 : f32 %v50 = math.absf %v49 : f32 %v51 = math.absf %v50 : f32 %v52 = math.absf %v51 : f32 %v53 = math.absf %v52 : f32 %v54 = math.absf %v53 : f32
    %v55 = math.absf %v54 : f32 %v56 = math.absf %v55 : f32 %v57 = math.absf %v56 : f32 %v58 = math.absf %v57 : f32 %v59 = math.absf %v58 : f32 %v60 = math.absf %v59 : f32 %v61 = math.absf %v60 : f32 %v62 = math.absf %v61 : f32 %v63 = math.absf %v62 : f32
    %v64 = math.absf %v63 : f32 %v65 = math.absf %v64 : f32 %v66 = math.absf %v65 : f32 %v67 = math.absf %v66 : f32 %v68 = math.absf %v67 : f32 %v69 = math.absf %v68 : f32 %v70 = math.absf %v69 : f32 %v71 = math.absf %v70 : f32 %v72 = math.absf %v71 : f32
    affine.store %v72, %bt6[%i, %j] : memref<30x30xf32> } }
  %bw6 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %x = affine.load %bt6[%i, %j] : memref<30x30xf32>
    %f = arith.constant 16.0 : f32
    %y = arith.mulf %x, %f : f32
    affine.store %y, %bw6[%i, %j] : memref<30x30xf32> } }
  %bs6 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %s = affine.load %bs5[%i, %j] : memref<30x30xf32>
    %x = affine.load %bw6[%i, %j] : memref<30x30xf32>
    %y = arith.addf %s, %x : f32
    affine.store %y, %bs6[%i, %j] : memref<30x30xf32> } }
  %bt7 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %v0 = affine.load %a[%i + 2, %j + 1] : memref<32x32xf32>
    %v1 = math.sin %v0 : f32 %v2 = math.absf %v1 : f32 %v3 = math.absf %v2 : f32 %v4 = math.absf %v3 : f32 %v5 = math.absf %v4 : f32 %v6 = math.absf %v5 : f32 %v7 = math.absf %v6 : f32 %v8 = math.absf %v7 : f32 %v9 = math.absf %v8 : f32
    %v10 = math.absf %v9 : f32 %v11 = math.absf %v10 : f32 %v12 = math.absf %v11 : f32 %v13 = math.absf %v12 : f32 %v14 = math.absf %v13 : f32 %v15 = math.absf %v14 : f32 %v16 = math.absf %v15 : f32 %v17 = math.absf %v16 : f32 %v18 = math.absf %v17 : f32
    %v19 = math.absf %v18 : f32 %v20 = math.absf %v19 : f32 %v21 = math.absf %v20 : f32 %v22 = math.absf %v21 : f32 %v23 = math.absf %v22 : f32 %v24 = math.absf %v23 : f32 %v25 = math.absf %v24 : f32 %v26 = math.absf %v25 : f32 %v27 = math.absf %v26 : f32
    %v28 = math.absf %v27 : f32 %v29 = math.absf %v28 : f32 %v30 = math.absf %v29 : f32 %v31 = math.absf %v30 : f32 %v32 = math.absf %v31 : f32 %v33 = math.absf %v32 : f32 %v34 = math.absf %v33 : f32 %v35 = math.absf %v34 : f32 %v36 = math.absf %v35 : f32
    %v37 = math.absf %v36 : f32 %v38 = math.absf %v37 : f32 %v39 = math.absf %v38 : f32 %v40 = math.absf %v39 : f32 %v41 = math.absf %v40 : f32 %v42 = math.absf %v41 : f32 %v43 = math.absf %v42 : f32 %v44 = math.absf %v43 : f32 %v45 = math.absf %v44 : f32
    %v46 = math.absf %v45 : f32 %v47 = math.absf %v46 : f32 %v48 = math.absf %v47 : f32 %v49 = math.absf %v48 : f32 %v50 = math.absf %v49 : f32 %v51 = math.absf %v50 : f32 %v52 = math.absf %v51 : f32 %v53 = math.absf %v52 : f32 %v54 = math.absf %v53 : f32
    %v55 = math.absf %v54 : f32 %v56 = math.absf %v55 : f32 %v57 = math.absf %v56 : f32 %v58 = math.absf %v57 : f32 %v59 = math.absf %v58 : f32 %v60 = math.absf %v59 : f32 %v61 = math.absf %v60 : f32 %v62 = math.absf %v61 : f32 %v63 = math.absf %v62 : f32
    %v64 = math.absf %v63 : f32 %v65 = math.absf %v64 : f32 %v66 = math.absf %v65 : f32 %v67 = math.absf %v66 : f32 %v68 = math.absf %v67 : f32 %v69 = math.absf %v68 : f32 %v70 = math.absf %v69 : f32 %v71 = math.absf %v70 : f32 %v72 = math.absf %v71 : f32
    affine.store %v72, %bt7[%i, %j] : memref<30x30xf32> } }
  %bw7 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %x = affine.load %bt7[%i, %j] : memref<30x30xf32>
    %f = arith.constant 17.0 : f32
    %y = arith.mulf %x, %f : f32
    affine.store %y, %bw7[%i, %j] : memref<30x30xf32> } }
  %bs7 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %s = affine.load %bs6[%i, %j] : memref<30x30xf32>
    %x = affine.load %bw7[%i, %j] : memref<30x30xf32>
    %y = arith.addf %s, %x : f32
    affine.store %y, %bs7[%i, %j] : memref<30x30xf32> } }
  %bt8 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %v0 = affine.load %a[%i + 2, %j + 2] : memref<32x32xf32>
    %v1 = math.sin %v0 : f32 %v2 = math.absf %v1 : f32 %v3 = math.absf %v2 : f32 %v4 = math.absf %v3 : f32 %v5 = math.absf %v4 : f32 %v6 = math.absf %v5 : f32 %v7 = math.absf %v6 : f32 %v8 = math.absf %v7 : f32 %v9 = math.absf %v8 : f32
    %v10 = math.absf %v9 : f32 %v11 = math.absf %v10 : f32 %v12 = math.absf %v11 : f32 %v13 = math.absf %v12 : f32 %v14 = math.absf %v13 : f32 %v15 = math.absf %v14 : f32 %v16 = math.absf %v15 : f32 %v17 = math.absf %v16 : f32 %v18 = math.absf %v17 : f32
    %v19 = math.absf %v18 : f32 %v20 = math.absf %v19 : f32 %v21 = math.absf %v20 : f32 %v22 = math.absf %v21 : f32 %v23 = math.absf %v22 : f32 %v24 = math.absf %v23 : f32 %v25 = math.absf %v24 : f32 %v26 = math.absf %v25 : f32 %v27 = math.absf %v26 : f32
    %v28 = math.absf %v27 : f32 %v29 = math.absf %v28 : f32 %v30 = math.absf %v29 : f32 %v31 = math.absf %v30 : f32 %v32 = math.absf %v31 : f32 %v33 = math.absf %v32 : f32 %v34 = math.absf %v33 : f32 %v35 = math.absf %v34 : f32 %v36 = math.absf %v35 : f32
    %v37 = math.absf %v36 : f32 %v38 = math.absf %v37 : f32 %v39 = math.absf %v38 : f32 %v40 = math.absf %v39 : f32 %v41 = math.absf %v40 : f32 %v42 = math.absf %v41 : f32 %v43 = math.absf %v42 : f32 %v44 = math.absf %v43 : f32 %v45 = math.absf %v44 : f32
    %v46 = math.absf %v45 : f32 %v47 = math.absf %v46 : f32 %v48 = math.absf %v47 : f32 %v49 = math.absf %v48 : f32 %v50 = math.absf %v49 : f32 %v51 = math.absf %v50 : f32 %v52 = math.absf %v51 : f32 %v53 = math.absf %v52 : f32 %v54 = math.absf %v53 : f32
    %v55 = math.absf %v54 : f32 %v56 = math.absf %v55 : f32 %v57 = math.absf %v56 : f32 %v58 = math.absf %v57 : f32 %v59 = math.absf %v58 : f32 %v60 = math.absf %v59 : f32 %v61 = math.absf %v60 : f32 %v62 = math.absf %v61 : f32 %v63 = math.absf %v62 : f32
    %v64 = math.absf %v63 : f32 %v65 = math.absf %v64 : f32 %v66 = math.absf %v65 : f32 %v67 = math.absf %v66 : f32 %v68 = math.absf %v67 : f32 %v69 = math.absf %v68 : f32 %v70 = math.absf %v69 : f32 %v71 = math.absf %v70 : f32 %v72 = math.absf %v71 : f32
    affine.store %v72, %bt8[%i, %j] : memref<30x30xf32> } }
  %bw8 = memref.alloc() : memref<30x30xf32>
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %x = affine.load %bt8[%i, %j] : memref<30x30xf32>
    %f = arith.constant 18.0 : f32
    %y = arith.mulf %x, %f : f32
    affine.store %y, %bw8[%i, %j] : memref<30x30xf32> } }
  affine.for %i = 0 to 30 { affine.for %j = 0 to 30 {
    %s = affine.load %bs7[%i, %j] : memref<30x30xf32>
    %x = affine.load %bw8[%i, %j] : memref<30x30xf32>
    %y = arith.addf %s, %x : f32
    affine.store %y, %b[%i, %j] : memref<30x30xf32> } }
  // The weight of one is used again.
  %ct0 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %v0 = affine.load %a[%i + 0, %j + 0] : memref<32x32xf32>
    %v1 = math.sin %v0 : f32 %v2 = math.absf %v1 : f32 %v3 = math.absf %v2 : f32 %v4 = math.absf %v3 : f32 %v5 = math.absf %v4 : f32 %v6 = math.absf %v5 : f32 %v7 = math.absf %v6 : f32 %v8 = math.absf %v7 : f32 %v9 = math.absf %v8 : f32
    %v10 = math.absf %v9 : f32 %v11 = math.absf %v10 : f32 %v12 = math.absf %v11 : f32 %v13 = math.absf %v12 : f32 %v14 = math.absf %v13 : f32 %v15 = math.absf %v14 : f32 %v16 = math.absf %v15 : f32 %v17 = math.absf %v16 : f32 %v18 = math.absf %v17 : f32
    %v19 = math.absf %v18 : f32 %v20 = math.absf %v19 : f32 %v21 = math.absf %v20 : f32 %v22 = math.absf %v21 : f32 %v23 = math.absf %v22 : f32 %v24 = math.absf %v23 : f32 %v25 = math.absf %v24 : f32 %v26 = math.absf %v25 : f32 %v27 = math.absf %v26 : f32
    %v28 = math.absf %v27 : f32 %v29 = math.absf %v28 : f32 %v30 = math.absf %v29 : f32 %v31 = math.absf %v30 : f32 %v32 = math.absf %v31 : f32 %v33 = math.absf %v32 : f32 %v34 = math.absf %v33 : f32 %v35 = math.absf %v34 : f32 %v36 = math.absf %v35 : f32
    %v37 = math.absf %v36 : f32 %v38 = math.absf %v37 : f32 %v39 = math.absf %v38 : f32 %v40 = math.absf %v39 : f32 %v41 = math.absf %v40 : f32 %v42 = math.absf %v41 : f32 %v43 = math.absf %v42 : f32 %v44 = math.absf %v43 : f32 %v45 = math.absf %v44 : f32
    %v46 = math.absf %v45 : f32 %v47 = math.absf %v46 : f32 %v48 = math.absf %v47 : f32 %v49 = math.absf %v48 : f32 %v50 = math.absf %v49 : f32 %v51 = math.absf %v50 : f32 %v52 = math.absf %v51 : f32 %v53 = math.absf %v52 : f32 %v54 = math.absf %v53 : f32
    %v55 = math.absf %v54 : f32 %v56 = math.absf %v55 : f32 %v57 = math.absf %v56 : f32 %v58 = math.absf %v57 : f32 %v59 = math.absf %v58 : f32 %v60 = math.absf %v59 : f32 %v61 = math.absf %v60 : f32 %v62 = math.absf %v61 : f32 %v63 = math.absf %v62 : f32
    %v64 = math.absf %v63 : f32 %v65 = math.absf %v64 : f32 %v66 = math.absf %v65 : f32 %v67 = math.absf %v66 : f32 %v68 = math.absf %v67 : f32 %v69 = math.absf %v68 : f32 %v70 = math.absf %v69 : f32 %v71 = math.absf %v70 : f32 %v72 = math.absf %v71 : f32
    affine.store %v72, %ct0[%i, %j] : memref<29x29xf32> } }
  %cw0 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %x = affine.load %ct0[%i, %j] : memref<29x29xf32>
    %f = arith.constant 10.0 : f32
    %y = arith.mulf %x, %f : f32
    affine.store %y, %cw0[%i, %j] : memref<29x29xf32> } }
  %cs0 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %s = arith.constant 0.0 : f32
    %x = affine.load %cw0[%i, %j] : memref<29x29xf32>
    %y = arith.addf %s, %x : f32
    affine.store %y, %cs0[%i, %j] : memref<29x29xf32> } }
  %ct1 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %v0 = affine.load %a[%i + 0, %j + 1] : memref<32x32xf32>
    %v1 = math.sin %v0 : f32 %v2 = math.absf %v1 : f32 %v3 = math.absf %v2 : f32 %v4 = math.absf %v3 : f32 %v5 = math.absf %v4 : f32 %v6 = math.absf %v5 : f32 %v7 = math.absf %v6 : f32 %v8 = math.absf %v7 : f32 %v9 = math.absf %v8 : f32
    %v10 = math.absf %v9 : f32 %v11 = math.absf %v10 : f32 %v12 = math.absf %v11 : f32 %v13 = math.absf %v12 : f32 %v14 = math.absf %v13 : f32 %v15 = math.absf %v14 : f32 %v16 = math.absf %v15 : f32 %v17 = math.absf %v16 : f32 %v18 = math.absf %v17 : f32
    %v19 = math.absf %v18 : f32 %v20 = math.absf %v19 : f32 %v21 = math.absf %v20 : f32 %v22 = math.absf %v21 : f32 %v23 = math.absf %v22 : f32 %v24 = math.absf %v23 : f32 %v25 = math.absf %v24 : f32 %v26 = math.absf %v25 : f32 %v27 = math.absf %v26 : f32
    %v28 = math.absf %v27 : f32 %v29 = math.absf %v28 : f32 %v30 = math.absf %v29 : f32 %v31 = math.absf %v30 : f32 %v32 = math.absf %v31 : f32 %v33 = math.absf %v32 : f32 %v34 = math.absf %v33 : f32 %v35 = math.absf %v34 : f32 %v36 = math.absf %v35 : f32
    %v37 = math.absf %v36 : f32 %v38 = math.absf %v37 : f32 %v39 = math.absf %v38 : f32 %v40 = math.absf %v39 : f32 %v41 = math.absf %v40 : f32 %v42 = math.absf %v41 : f32 %v43 = math.absf %v42 : f32 %v44 = math.absf %v43 : f32 %v45 = math.absf %v44 : f32
    %v46 = math.absf %v45 : f32 %v47 = math.absf %v46 : f32 %v48 = math.absf %v47 : f32 %v49 = math.absf %v48 : f32 %v50 = math.absf %v49 : f32 %v51 = math.absf %v50 : f32 %v52 = math.absf %v51 : f32 %v53 = math.absf %v52 : f32 %v54 = math.absf %v53 : f32
    %v55 = math.absf %v54 : f32 %v56 = math.absf %v55 : f32 %v57 = math.absf %v56 : f32 %v58 = math.absf %v57 : f32 %v59 = math.absf %v58 : f32 %v60 = math.absf %v59 : f32 %v61 = math.absf %v60 : f32 %v62 = math.absf %v61 : f32 %v63 = math.absf %v62 : f32
    %v64 = math.absf %v63 : f32 %v65 = math.absf %v64 : f32 %v66 = math.absf %v65 : f32 %v67 = math.absf %v66 : f32 %v68 = math.absf %v67 : f32 %v69 = math.absf %v68 : f32 %v70 = math.absf %v69 : f32 %v71 = math.absf %v70 : f32 %v72 = math.absf %v71 : f32
    affine.store %v72, %ct1[%i, %j] : memref<29x29xf32> } }
  %cw1 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %x = affine.load %ct1[%i, %j] : memref<29x29xf32>
    %f = arith.constant 11.0 : f32
    %y = arith.mulf %x, %f : f32
    affine.store %y, %cw1[%i, %j] : memref<29x29xf32> } }
  %cs1 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %s = affine.load %cs0[%i, %j] : memref<29x29xf32>
    %x = affine.load %cw1[%i, %j] : memref<29x29xf32>
    %y = arith.addf %s, %x : f32
    affine.store %y, %cs1[%i, %j] : memref<29x29xf32> } }
  %ct2 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %v0 = affine.load %a[%i + 0, %j + 2] : memref<32x32xf32>
    %v1 = math.sin %v0 : f32 %v2 = math.absf %v1 : f32 %v3 = math.absf %v2 : f32 %v4 = math.absf %v3 : f32 %v5 = math.absf %v4 : f32 %v6 = math.absf %v5 : f32 %v7 = math.absf %v6 : f32 %v8 = math.absf %v7 : f32 %v9 = math.absf %v8 : f32
    %v10 = math.absf %v9 : f32 %v11 = math.absf %v10 : f32 %v12 = math.absf %v11 : f32 %v13 = math.absf %v12 : f32 %v14 = math.absf %v13 : f32 %v15 = math.absf %v14 : f32 %v16 = math.absf %v15 : f32 %v17 = math.absf %v16 : f32 %v18 = math.absf %v17 : f32
    %v19 = math.absf %v18 : f32 %v20 = math.absf %v19 : f32 %v21 = math.absf %v20 : f32 %v22 = math.absf %v21 : f32 %v23 = math.absf %v22 : f32 %v24 = math.absf %v23 : f32 %v25 = math.absf %v24 : f32 %v26 = math.absf %v25 : f32 %v27 = math.absf %v26 : f32
    %v28 = math.absf %v27 : f32 %v29 = math.absf %v28 : f32 %v30 = math.absf %v29 : f32 %v31 = math.absf %v30 : f32 %v32 = math.absf %v31 : f32 %v33 = math.absf %v32 : f32 %v34 = math.absf %v33 : f32 %v35 = math.absf %v34 : f32 %v36 = math.absf %v35 : f32
    %v37 = math.absf %v36 : f32 %v38 = math.absf %v37 : f32 %v39 = math.absf %v38 : f32 %v40 = math.absf %v39 : f32 %v41 = math.absf %v40 : f32 %v42 = math.absf %v41 : f32 %v43 = math.absf %v42 : f32 %v44 = math.absf %v43 : f32 %v45 = math.absf %v44 : f32
    %v46 = math.absf %v45 : f32 %v47 = math.absf %v46 : f32 %v48 = math.absf %v47 : f32 %v49 = math.absf %v48 : f32 %v50 = math.absf %v49 : f32 %v51 = math.absf %v50 : f32 %v52 = math.absf %v51 : f32 %v53 = math.absf %v52 : f32 %v54 = math.absf %v53 : f32
    %v55 = math.absf %v54 : f32 %v56 = math.absf %v55 : f32 %v57 = math.absf %v56 : f32 %v58 = math.absf %v57 : f32 %v59 = math.absf %v58 : f32 %v60 = math.absf %v59 : f32 %v61 = math.absf %v60 : f32 %v62 = math.absf %v61 : f32 %v63 = math.absf %v62 : f32
    %v64 = math.absf %v63 : f32 %v65 = math.absf %v64 : f32 %v66 = math.absf %v65 : f32 %v67 = math.absf %v66 : f32 %v68 = math.absf %v67 : f32 %v69 = math.absf %v68 : f32 %v70 = math.absf %v69 : f32 %v71 = math.absf %v70 : f32 %v72 = math.absf %v71 : f32
    affine.store %v72, %ct2[%i, %j] : memref<29x29xf32> } }
  %cw2 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %x = affine.load %ct2[%i, %j] : memref<29x29xf32>
    %f = arith.constant 12.0 : f32
    %y = arith.mulf %x, %f : f32
    affine.store %y, %cw2[%i, %j] : memref<29x29xf32> } }
  %cs2 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %s = affine.load %cs1[%i, %j] : memref<29x29xf32>
    %x = affine.load %cw2[%i, %j] : memref<29x29xf32>
    %y = arith.addf %s, %x : f32
    affine.store %y, %cs2[%i, %j] : memref<29x29xf32> } }
  %ct3 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %v0 = affine.load %a[%i + 1, %j + 0] : memref<32x32xf32>
    %v1 = math.sin %v0 : f32 %v2 = math.absf %v1 : f32 %v3 = math.absf %v2 : f32 %v4 = math.absf %v3 : f32 %v5 = math.absf %v4 : f32 %v6 = math.absf %v5 : f32 %v7 = math.absf %v6 : f32 %v8 = math.absf %v7 : f32 %v9 = math.absf %v8 : f32
    %v10 = math.absf %v9 : f32 %v11 = math.absf %v10 : f32 %v12 = math.absf %v11 : f32 %v13 = math.absf %v12 : f32 %v14 = math.absf %v13 : f32 %v15 = math.absf %v14 : f32 %v16 = math.absf %v15 : f32 %v17 = math.absf %v16 : f32 %v18 = math.absf %v17 : f32
    %v19 = math.absf %v18 : f32 %v20 = math.absf %v19 : f32 %v21 = math.absf %v20 : f32 %v22 = math.absf %v21 : f32 %v23 = math.absf %v22 : f32 %v24 = math.absf %v23 : f32 %v25 = math.absf %v24 : f32 %v26 = math.absf %v25 : f32 %v27 = math.absf %v26 : f32
    %v28 = math.absf %v27 : f32 %v29 = math.absf %v28 : f32 %v30 = math.absf %v29 : f32 %v31 = math.absf %v30 : f32 %v32 = math.absf %v31 : f32 %v33 = math.absf %v32 : f32 %v34 = math.absf %v33 : f32 %v35 = math.absf %v34 : f32 %v36 = math.absf %v35 : f32
    %v37 = math.absf %v36 : f32 %v38 = math.absf %v37 : f32 %v39 = math.absf %v38 : f32 %v40 = math.absf %v39 : f32 %v41 = math.absf %v40 : f32 %v42 = math.absf %v41 : f32 %v43 = math.absf %v42 : f32 %v44 = math.absf %v43 : f32 %v45 = math.absf %v44 : f32
    %v46 = math.absf %v45 : f32 %v47 = math.absf %v46 : f32 %v48 = math.absf %v47 : f32 %v49 = math.absf %v48 : f32 %v50 = math.absf %v49 : f32 %v51 = math.absf %v50 : f32 %v52 = math.absf %v51 : f32 %v53 = math.absf %v52 : f32 %v54 = math.absf %v53 : f32
    %v55 = math.absf %v54 : f32 %v56 = math.absf %v55 : f32 %v57 = math.absf %v56 : f32 %v58 = math.absf %v57 : f32 %v59 = math.absf %v58 : f32 %v60 = math.absf %v59 : f32 %v61 = math.absf %v60 : f32 %v62 = math.absf %v61 : f32 %v63 = math.absf %v62 : f32
    %v64 = math.absf %v63 : f32 %v65 = math.absf %v64 : f32 %v66 = math.absf %v65 : f32 %v67 = math.absf %v66 : f32 %v68 = math.absf %v67 : f32 %v69 = math.absf %v68 : f32 %v70 = math.absf %v69 : f32 %v71 = math.absf %v70 : f32 %v72 = math.absf %v71 : f32
    affine.store %v72, %ct3[%i, %j] : memref<29x29xf32> } }
  %cw3 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %x = affine.load %ct3[%i, %j] : memref<29x29xf32>
    %f = arith.constant 13.0 : f32
    %y = arith.mulf %x, %f : f32
    affine.store %y, %cw3[%i, %j] : memref<29x29xf32> } }
  %cs3 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %s = affine.load %cs2[%i, %j] : memref<29x29xf32>
    %x = affine.load %cw3[%i, %j] : memref<29x29xf32>
    %y = arith.addf %s, %x : f32
    affine.store %y, %cs3[%i, %j] : memref<29x29xf32> } }
  %ct4 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %v0 = affine.load %a[%i + 1, %j + 1] : memref<32x32xf32>
    %v1 = math.sin %v0 : f32 %v2 = math.absf %v1 : f32 %v3 = math.absf %v2 : f32 %v4 = math.absf %v3 : f32 %v5 = math.absf %v4 : f32 %v6 = math.absf %v5 : f32 %v7 = math.absf %v6 : f32 %v8 = math.absf %v7 : f32 %v9 = math.absf %v8 : f32
    %v10 = math.absf %v9 : f32 %v11 = math.absf %v10 : f32 %v12 = math.absf %v11 : f32 %v13 = math.absf %v12 : f32 %v14 = math.absf %v13 : f32 %v15 = math.absf %v14 : f32 %v16 = math.absf %v15 : f32 %v17 = math.absf %v16 : f32 %v18 = math.absf %v17 : f32
    %v19 = math.absf %v18 : f32 %v20 = math.absf %v19 : f32 %v21 = math.absf %v20 : f32 %v22 = math.absf %v21 : f32 %v23 = math.absf %v22 : f32 %v24 = math.absf %v23 : f32 %v25 = math.absf %v24 : f32 %v26 = math.absf %v25 : f32 %v27 = math.absf %v26 : f32
    %v28 = math.absf %v27 : f32 %v29 = math.absf %v28 : f32 %v30 = math.absf %v29 : f32 %v31 = math.absf %v30 : f32 %v32 = math.absf %v31 : f32 %v33 = math.absf %v32 : f32 %v34 = math.absf %v33 : f32 %v35 = math.absf %v34 : f32 %v36 = math.absf %v35 : f32
    %v37 = math.absf %v36 : f32 %v38 = math.absf %v37 : f32 %v39 = math.absf %v38 : f32 %v40 = math.absf %v39 : f32 %v41 = math.absf %v40 : f32 %v42 = math.absf %v41 : f32 %v43 = math.absf %v42 : f32 %v44 = math.absf %v43 : f32 %v45 = math.absf %v44 : f32
    %v46 = math.absf %v45 : f32 %v47 = math.absf %v46 : f32 %v48 = math.absf %v47 : f32 %v49 = math.absf %v48 : f32 %v50 = math.absf %v49 : f32 %v51 = math.absf %v50 : f32 %v52 = math.absf %v51 : f32 %v53 = math.absf %v52 : f32 %v54 = math.absf %v53 : f32
    %v55 = math.absf %v54 : f32 %v56 = math.absf %v55 : f32 %v57 = math.absf %v56 : f32 %v58 = math.absf %v57 : f32 %v59 = math.absf %v58 : f32 %v60 = math.absf %v59 : f32 %v61 = math.absf %v60 : f32 %v62 = math.absf %v61 : f32 %v63 = math.absf %v62 : f32
    %v64 = math.absf %v63 : f32 %v65 = math.absf %v64 : f32 %v66 = math.absf %v65 : f32 %v67 = math.absf %v66 : f32 %v68 = math.absf %v67 : f32 %v69 = math.absf %v68 : f32 %v70 = math.absf %v69 : f32 %v71 = math.absf %v70 : f32 %v72 = math.absf %v71 : f32
    affine.store %v72, %ct4[%i, %j] : memref<29x29xf32> } }
  %cs4 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %s = affine.load %cs3[%i, %j] : memref<29x29xf32>
    %x = affine.load %ct4[%i, %j] : memref<29x29xf32>
    %y = arith.addf %s, %x : f32
    affine.store %y, %cs4[%i, %j] : memref<29x29xf32> } }
  %ct5 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %v0 = affine.load %a[%i + 1, %j + 2] : memref<32x32xf32>
    %v1 = math.sin %v0 : f32 %v2 = math.absf %v1 : f32 %v3 = math.absf %v2 : f32 %v4 = math.absf %v3 : f32 %v5 = math.absf %v4 : f32 %v6 = math.absf %v5 : f32 %v7 = math.absf %v6 : f32 %v8 = math.absf %v7 : f32 %v9 = math.absf %v8 : f32
    %v10 = math.absf %v9 : f32 %v11 = math.absf %v10 : f32 %v12 = math.absf %v11 : f32 %v13 = math.absf %v12 : f32 %v14 = math.absf %v13 : f32 %v15 = math.absf %v14 : f32 %v16 = math.absf %v15 : f32 %v17 = math.absf %v16 : f32 %v18 = math.absf %v17 : f32
    %v19 = math.absf %v18 : f32 %v20 = math.absf %v19 : f32 %v21 = math.absf %v20 : f32 %v22 = math.absf %v21 : f32 %v23 = math.absf %v22 : f32 %v24 = math.absf %v23 : f32 %v25 = math.absf %v24 : f32 %v26 = math.absf %v25 : f32 %v27 = math.absf %v26 : f32
    %v28 = math.absf %v27 : f32 %v29 = math.absf %v28 : f32 %v30 = math.absf %v29 : f32 %v31 = math.absf %v30 : f32 %v32 = math.absf %v31 : f32 %v33 = math.absf %v32 : f32 %v34 = math.absf %v33 : f32 %v35 = math.absf %v34 : f32 %v36 = math.absf %v35 : f32
    %v37 = math.absf %v36 : f32 %v38 = math.absf %v37 : f32 %v39 = math.absf %v38 : f32 %v40 = math.absf %v39 : f32 %v41 = math.absf %v40 : f32 %v42 = math.absf %v41 : f32 %v43 = math.absf %v42 : f32 %v44 = math.absf %v43 : f32 %v45 = math.absf %v44 : f32
    %v46 = math.absf %v45 : f32 %v47 = math.absf %v46 : f32 %v48 = math.absf %v47 : f32 %v49 = math.absf %v48 : f32 %v50 = math.absf %v49 : f32 %v51 = math.absf %v50 : f32 %v52 = math.absf %v51 : f32 %v53 = math.absf %v52 : f32 %v54 = math.absf %v53 : f32
    %v55 = math.absf %v54 : f32 %v56 = math.absf %v55 : f32 %v57 = math.absf %v56 : f32 %v58 = math.absf %v57 : f32 %v59 = math.absf %v58 : f32 %v60 = math.absf %v59 : f32 %v61 = math.absf %v60 : f32 %v62 = math.absf %v61 : f32 %v63 = math.absf %v62 : f32
    %v64 = math.absf %v63 : f32 %v65 = math.absf %v64 : f32 %v66 = math.absf %v65 : f32 %v67 = math.absf %v66 : f32 %v68 = math.absf %v67 : f32 %v69 = math.absf %v68 : f32 %v70 = math.absf %v69 : f32 %v71 = math.absf %v70 : f32 %v72 = math.absf %v71 : f32
    affine.store %v72, %ct5[%i, %j] : memref<29x29xf32> } }
  %cw5 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %x = affine.load %ct5[%i, %j] : memref<29x29xf32>
    %f = arith.constant 15.0 : f32
    %y = arith.mulf %x, %f : f32
    affine.store %y, %cw5[%i, %j] : memref<29x29xf32> } }
  %cs5 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %s = affine.load %cs4[%i, %j] : memref<29x29xf32>
    %x = affine.load %cw5[%i, %j] : memref<29x29xf32>
    %y = arith.addf %s, %x : f32
    affine.store %y, %cs5[%i, %j] : memref<29x29xf32> } }
  %ct6 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %v0 = affine.load %a[%i + 2, %j + 0] : memref<32x32xf32>
    %v1 = math.sin %v0 : f32 %v2 = math.absf %v1 : f32 %v3 = math.absf %v2 : f32 %v4 = math.absf %v3 : f32 %v5 = math.absf %v4 : f32 %v6 = math.absf %v5 : f32 %v7 = math.absf %v6 : f32 %v8 = math.absf %v7 : f32 %v9 = math.absf %v8 : f32
    %v10 = math.absf %v9 : f32 %v11 = math.absf %v10 : f32 %v12 = math.absf %v11 : f32 %v13 = math.absf %v12 : f32 %v14 = math.absf %v13 : f32 %v15 = math.absf %v14 : f32 %v16 = math.absf %v15 : f32 %v17 = math.absf %v16 : f32 %v18 = math.absf %v17 : f32
    %v19 = math.absf %v18 : f32 %v20 = math.absf %v19 : f32 %v21 = math.absf %v20 : f32 %v22 = math.absf %v21 : f32 %v23 = math.absf %v22 : f32 %v24 = math.absf %v23 : f32 %v25 = math.absf %v24 : f32 %v26 = math.absf %v25 : f32 %v27 = math.absf %v26 : f32
    %v28 = math.absf %v27 : f32 %v29 = math.absf %v28 : f32 %v30 = math.absf %v29 : f32 %v31 = math.absf %v30 : f32 %v32 = math.absf %v31 : f32 %v33 = math.absf %v32 : f32 %v34 = math.absf %v33 : f32 %v35 = math.absf %v34 : f32 %v36 = math.absf %v35 : f32
    %v37 = math.absf %v36 : f32 %v38 = math.absf %v37 : f32 %v39 = math.absf %v38 : f32 %v40 = math.absf %v39 : f32 %v41 = math.absf %v40 : f32 %v42 = math.absf %v41 : f32 %v43 = math.absf %v42 : f32 %v44 = math.absf %v43 : f32 %v45 = math.absf %v44 : f32
    %v46 = math.absf %v45 : f32 %v47 = math.absf %v46 : f32 %v48 = math.absf %v47 : f32 %v49 = math.absf %v48 : f32 %v50 = math.absf %v49 : f32 %v51 = math.absf %v50 : f32 %v52 = math.absf %v51 : f32 %v53 = math.absf %v52 : f32 %v54 = math.absf %v53 : f32
    %v55 = math.absf %v54 : f32 %v56 = math.absf %v55 : f32 %v57 = math.absf %v56 : f32 %v58 = math.absf %v57 : f32 %v59 = math.absf %v58 : f32 %v60 = math.absf %v59 : f32 %v61 = math.absf %v60 : f32 %v62 = math.absf %v61 : f32 %v63 = math.absf %v62 : f32
    %v64 = math.absf %v63 : f32 %v65 = math.absf %v64 : f32 %v66 = math.absf %v65 : f32 %v67 = math.absf %v66 : f32 %v68 = math.absf %v67 : f32 %v69 = math.absf %v68 : f32 %v70 = math.absf %v69 : f32 %v71 = math.absf %v70 : f32 %v72 = math.absf %v71 : f32
    affine.store %v72, %ct6[%i, %j] : memref<29x29xf32> } }
  %cw6 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %x = affine.load %ct6[%i, %j] : memref<29x29xf32>
    %f = arith.constant 16.0 : f32
    %y = arith.mulf %x, %f : f32
    affine.store %y, %cw6[%i, %j] : memref<29x29xf32> } }
  %cs6 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %s = affine.load %cs5[%i, %j] : memref<29x29xf32>
    %x = affine.load %cw6[%i, %j] : memref<29x29xf32>
    %y = arith.addf %s, %x : f32
    affine.store %y, %cs6[%i, %j] : memref<29x29xf32> } }
  %ct7 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %v0 = affine.load %a[%i + 2, %j + 1] : memref<32x32xf32>
    %v1 = math.sin %v0 : f32 %v2 = math.absf %v1 : f32 %v3 = math.absf %v2 : f32 %v4 = math.absf %v3 : f32 %v5 = math.absf %v4 : f32 %v6 = math.absf %v5 : f32 %v7 = math.absf %v6 : f32 %v8 = math.absf %v7 : f32 %v9 = math.absf %v8 : f32
    %v10 = math.absf %v9 : f32 %v11 = math.absf %v10 : f32 %v12 = math.absf %v11 : f32 %v13 = math.absf %v12 : f32 %v14 = math.absf %v13 : f32 %v15 = math.absf %v14 : f32 %v16 = math.absf %v15 : f32 %v17 = math.absf %v16 : f32 %v18 = math.absf %v17 : f32
    %v19 = math.absf %v18 : f32 %v20 = math.absf %v19 : f32 %v21 = math.absf %v20 : f32 %v22 = math.absf %v21 : f32 %v23 = math.absf %v22 : f32 %v24 = math.absf %v23 : f32 %v25 = math.absf %v24 : f32 %v26 = math.absf %v25 : f32 %v27 = math.absf %v26 : f32
    %v28 = math.absf %v27 : f32 %v29 = math.absf %v28 : f32 %v30 = math.absf %v29 : f32 %v31 = math.absf %v30 : f32 %v32 = math.absf %v31 : f32 %v33 = math.absf %v32 : f32 %v34 = math.absf %v33 : f32 %v35 = math.absf %v34 : f32 %v36 = math.absf %v35 : f32
    %v37 = math.absf %v36 : f32 %v38 = math.absf %v37 : f32 %v39 = math.absf %v38 : f32 %v40 = math.absf %v39 : f32 %v41 = math.absf %v40 : f32 %v42 = math.absf %v41 : f32 %v43 = math.absf %v42 : f32 %v44 = math.absf %v43 : f32 %v45 = math.absf %v44 : f32
    %v46 = math.absf %v45 : f32 %v47 = math.absf %v46 : f32 %v48 = math.absf %v47 : f32 %v49 = math.absf %v48 : f32 %v50 = math.absf %v49 : f32 %v51 = math.absf %v50 : f32 %v52 = math.absf %v51 : f32 %v53 = math.absf %v52 : f32 %v54 = math.absf %v53 : f32
    %v55 = math.absf %v54 : f32 %v56 = math.absf %v55 : f32 %v57 = math.absf %v56 : f32 %v58 = math.absf %v57 : f32 %v59 = math.absf %v58 : f32 %v60 = math.absf %v59 : f32 %v61 = math.absf %v60 : f32 %v62 = math.absf %v61 : f32 %v63 = math.absf %v62 : f32
    %v64 = math.absf %v63 : f32 %v65 = math.absf %v64 : f32 %v66 = math.absf %v65 : f32 %v67 = math.absf %v66 : f32 %v68 = math.absf %v67 : f32 %v69 = math.absf %v68 : f32 %v70 = math.absf %v69 : f32 %v71 = math.absf %v70 : f32 %v72 = math.absf %v71 : f32
    affine.store %v72, %ct7[%i, %j] : memref<29x29xf32> } }
  %cw7 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %x = affine.load %ct7[%i, %j] : memref<29x29xf32>
    %f = arith.constant 17.0 : f32
    %y = arith.mulf %x, %f : f32
    affine.store %y, %cw7[%i, %j] : memref<29x29xf32> } }
  %cs7 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %s = affine.load %cs6[%i, %j] : memref<29x29xf32>
    %x = affine.load %cw7[%i, %j] : memref<29x29xf32>
    %y = arith.addf %s, %x : f32
    affine.store %y, %cs7[%i, %j] : memref<29x29xf32> } }
  %ct8 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %v0 = affine.load %a[%i + 2, %j + 2] : memref<32x32xf32>
    %v1 = math.sin %v0 : f32 %v2 = math.absf %v1 : f32 %v3 = math.absf %v2 : f32 %v4 = math.absf %v3 : f32 %v5 = math.absf %v4 : f32 %v6 = math.absf %v5 : f32 %v7 = math.absf %v6 : f32 %v8 = math.absf %v7 : f32 %v9 = math.absf %v8 : f32
    %v10 = math.absf %v9 : f32 %v11 = math.absf %v10 : f32 %v12 = math.absf %v11 : f32 %v13 = math.absf %v12 : f32 %v14 = math.absf %v13 : f32 %v15 = math.absf %v14 : f32 %v16 = math.absf %v15 : f32 %v17 = math.absf %v16 : f32 %v18 = math.absf %v17 : f32
    %v19 = math.absf %v18 : f32 %v20 = math.absf %v19 : f32 %v21 = math.absf %v20 : f32 %v22 = math.absf %v21 : f32 %v23 = math.absf %v22 : f32 %v24 = math.absf %v23 : f32 %v25 = math.absf %v24 : f32 %v26 = math.absf %v25 : f32 %v27 = math.absf %v26 : f32
    %v28 = math.absf %v27 : f32 %v29 = math.absf %v28 : f32 %v30 = math.absf %v29 : f32 %v31 = math.absf %v30 : f32 %v32 = math.absf %v31 : f32 %v33 = math.absf %v32 : f32 %v34 = math.absf %v33 : f32 %v35 = math.absf %v34 : f32 %v36 = math.absf %v35 : f32
    %v37 = math.absf %v36 : f32 %v38 = math.absf %v37 : f32 %v39 = math.absf %v38 : f32 %v40 = math.absf %v39 : f32 %v41 = math.absf %v40 : f32 %v42 = math.absf %v41 : f32 %v43 = math.absf %v42 : f32 %v44 = math.absf %v43 : f32 %v45 = math.absf %v44 : f32
    %v46 = math.absf %v45 : f32 %v47 = math.absf %v46 : f32 %v48 = math.absf %v47 : f32 %v49 = math.absf %v48 : f32 %v50 = math.absf %v49 : f32 %v51 = math.absf %v50 : f32 %v52 = math.absf %v51 : f32 %v53 = math.absf %v52 : f32 %v54 = math.absf %v53 : f32
    %v55 = math.absf %v54 : f32 %v56 = math.absf %v55 : f32 %v57 = math.absf %v56 : f32 %v58 = math.absf %v57 : f32 %v59 = math.absf %v58 : f32 %v60 = math.absf %v59 : f32 %v61 = math.absf %v60 : f32 %v62 = math.absf %v61 : f32 %v63 = math.absf %v62 : f32
    %v64 = math.absf %v63 : f32 %v65 = math.absf %v64 : f32 %v66 = math.absf %v65 : f32 %v67 = math.absf %v66 : f32 %v68 = math.absf %v67 : f32 %v69 = math.absf %v68 : f32 %v70 = math.absf %v69 : f32 %v71 = math.absf %v70 : f32 %v72 = math.absf %v71 : f32
    affine.store %v72, %ct8[%i, %j] : memref<29x29xf32> } }
  %cw8 = memref.alloc() : memref<29x29xf32>
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %x = affine.load %ct8[%i, %j] : memref<29x29xf32>
    %f = arith.constant 18.0 : f32
    %y = arith.mulf %x, %f : f32
    affine.store %y, %cw8[%i, %j] : memref<29x29xf32> } }
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %s = affine.load %cs7[%i, %j] : memref<29x29xf32>
    %x = affine.load %cw8[%i, %j] : memref<29x29xf32>
    %y = arith.addf %s, %x : f32
    affine.store %y, %c[%i, %j] : memref<29x29xf32> } }
  affine.for %i = 0 to 29 { affine.for %j = 0 to 29 {
    %x = affine.load %ct3[%i, %j] : memref<29x29xf32>
    affine.store %x, %d[%i, %j] : memref<29x29xf32> } }
  return
}
